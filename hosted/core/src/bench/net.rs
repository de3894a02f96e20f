//! Packets through a driver that discards them (P8 with one packet at a time, P9 with 32): driver
//! and program linked into one domain, in a domain each, and with the network shadow between them.

use super::respawn::{Driver, respawner};
use super::{launch, prepare, say, tell, tsc};
use abi::AnyHandle;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use interfaces::{Making, Net, PacketSource};
use isolation::Reason;
use isolation::death::kill::kill;
use isolation::load::loader::Instance;

/// Rounds of every figure.
const ROUNDS: usize = 1000;
/// Batches in a round, for batches of one packet and of 32.
const BATCHES: [(u32, u64); 2] = [(1, 4000), (32, 400)];

/// A way from the program to the device.
struct Way {
    /// What is put behind the figure's number.
    letter: &'static str,
    name: &'static str,
    instance: Instance,
    program: abi::Handle<dyn PacketSource>,
}

/// All three ways, for both sizes, with packets that are written anew and with packets that are
/// not.
pub fn nullnet() -> Result<(), String> {
    let image = prepare("domains/packet-source")?;
    let way = |letter, name, device: Option<AnyHandle>| {
        let (instance, program) = launch(&image, device, None)?;
        Ok::<_, String>(Way {
            letter,
            name,
            instance,
            program,
        })
    };
    let (driver, device) = launch::<dyn Net>(&prepare("domains/nullnet")?, None, None)?;
    let behind = Driver::<dyn Net>::new(prepare("domains/nullnet")?, "");
    let grant = respawner(&behind).map_err(say)?;
    let (shadow, shadowed) = launch::<dyn Net>(&prepare("domains/net-shadow")?, Some(grant), None)?;
    let ways = [
        way("l", "linked", None)?,
        way("d", "driver in a domain", Some(device.into_any()))?,
        way("s", "behind a shadow", Some(shadowed.into_any()))?,
    ];
    for (size, batches) in BATCHES {
        for making in [Making::Again, Making::Anew] {
            measure_ways(&ways, size, batches, making)?;
        }
    }
    for way in &ways {
        kill(&way.instance.block, Reason::Exited);
    }
    kill(&shadow.block, Reason::Exited);
    behind.end();
    kill(&driver.block, Reason::Exited);
    Ok(())
}

/// The three ways in turns.
fn measure_ways(ways: &[Way; 3], size: u32, batches: u64, making: Making) -> Result<(), String> {
    let packets = batches * u64::from(size);
    let mut rounds = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        for (way, rounds) in ways.iter().zip(&mut rounds) {
            let begin = tsc();
            let sent = way.program.run(batches, size, making).map_err(say)?;
            rounds.push(tsc() - begin);
            if sent != packets {
                return Err(format!("{sent} packets of {packets} were sent"));
            }
        }
    }
    let (mark, what) = match making {
        Making::Again => ("", "the same packets"),
        Making::Anew => ("w", "written anew"),
    };
    let id = if size == 1 { "P8" } else { "P9" };
    for (way, rounds) in ways.iter().zip(&rounds) {
        tell(
            &format!("{id}{}{mark}", way.letter),
            &format!("packets, {size} at a time, {what}, {}", way.name),
            "ticks",
            rounds,
            packets,
        );
    }
    Ok(())
}
