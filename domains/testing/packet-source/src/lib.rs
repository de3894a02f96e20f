//! A program that sends packets through the device that it was granted, or through one that is
//! linked into it: the difference is what isolation costs (P8 and P9 of the benchmark list).
#![no_std]
#![forbid(unsafe_code)]

mod frame;

use interfaces::{
    Batch, Handle, Making, Net, NetError, Packet, PacketSource, RRef, RVec, RpcResult,
};
use nullnet_device::NullNet;

/// Makes the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(device: Option<Handle<dyn Net>>) -> RpcResult<Handle<dyn PacketSource>> {
    match device {
        Some(device) => Handle::new(Program(Granted(device))),
        None => Handle::new(Program(Linked(NullNet::new()))),
    }
}

/// Where packets go. The two ways are separate types, so that the compiler can treat the linked one
/// like any other code of this domain.
trait Way: Send + Sync {
    fn send(&self, batch: RRef<Batch>) -> Result<RRef<Batch>, NetError>;
}

struct Granted(Handle<dyn Net>);

impl Way for Granted {
    #[inline]
    fn send(&self, batch: RRef<Batch>) -> Result<RRef<Batch>, NetError> {
        self.0.send(batch)
    }
}

struct Linked(NullNet);

impl Way for Linked {
    #[inline]
    fn send(&self, batch: RRef<Batch>) -> Result<RRef<Batch>, NetError> {
        self.0.send(batch)
    }
}

struct Program<W>(W);

impl<W: Way + 'static> PacketSource for Program<W> {
    fn run(&self, rounds: u64, size: u32, making: Making) -> Result<u64, NetError> {
        let mut batch = full(size)?;
        let room = batch.packets.len() as u32;
        let mut number = 0;
        for _ in 0..rounds {
            if matches!(making, Making::Anew) {
                for packet in batch.packets.iter_mut() {
                    frame::write(packet, number);
                    number += 1;
                }
            }
            batch.count = room;
            batch = self.0.send(batch)?;
        }
        Ok(rounds * u64::from(room))
    }
}

/// A batch of `size` packets.
fn full(size: u32) -> RpcResult<RRef<Batch>> {
    let mut packet = Packet {
        length: 0,
        bytes: [0; 1596],
    };
    frame::write(&mut packet, 0);
    RRef::new(Batch {
        count: size,
        packets: RVec::filled(packet, size as usize)?,
    })
}
