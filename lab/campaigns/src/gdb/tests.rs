//! The protocol, against a debugger's stub that is a script.

use super::*;
use std::collections::VecDeque;

/// A stub that gives these answers, one packet each, a few bytes at a time, and remembers what
/// it was told.
struct Script {
    answers: VecDeque<Vec<u8>>,
    told: Vec<u8>,
}

impl Script {
    fn new(answers: &[&str]) -> Self {
        let packet = |text: &&str| format!("+${text}#{:02x}", sum(text.as_bytes())).into_bytes();
        Script {
            answers: answers.iter().map(packet).collect(),
            told: Vec::new(),
        }
    }
}

impl Read for Script {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let Some(answer) = self.answers.front_mut() else {
            return Err(std::io::ErrorKind::TimedOut.into());
        };
        let length = answer.len().min(3);
        buffer[..length].copy_from_slice(&answer[..length]);
        answer.drain(..length);
        if answer.is_empty() {
            self.answers.pop_front();
        }
        Ok(length)
    }
}

impl Write for Script {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.told.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Patient for Script {
    fn wait_at_most(&mut self, _: Duration) -> Result<()> {
        Ok(())
    }
}

fn client(answers: &[&str]) -> Gdb<Script> {
    let all = [&["PacketSize=1000", "vCont;c;C;s;S"], answers].concat();
    Gdb::over(Script::new(&all)).unwrap()
}

fn told(gdb: &Gdb<Script>) -> String {
    String::from_utf8_lossy(&gdb.stream.told).into_owned()
}

/// Registers of which the instruction pointer is `ip`, as the stub says them.
fn registers(ip: u64) -> String {
    let general = (0..16u64).map(|number| number << 32);
    let long: Vec<u8> = general.chain([ip]).flat_map(u64::to_le_bytes).collect();
    digits(&long) + "46020000000000000000"
}

#[test]
fn the_monitor_answers_in_parts() {
    let parts = ["ISR 2", "40\n"].map(|part| format!("O{}", digits(part.as_bytes())));
    let mut gdb = client(&[&parts[0], &parts[1], "OK", "E22"]);
    assert_eq!(gdb.monitor("info").unwrap(), "ISR 240\n");
    assert!(told(&gdb).contains("$qRcmd,696e666f#"));
    assert!(gdb.monitor("info").is_err());
}

#[test]
fn processors_are_named_one_by_one() {
    let mut gdb = client(&[
        "OK",
        &registers(1),
        "T05thread:02;",
        &registers(2),
        "T05thread:01;",
    ]);
    let registers = gdb.registers(1).unwrap();
    assert_eq!(gdb.step(1, &registers).unwrap().ip, 2);
    gdb.go(&[(0, Action::Run), (1, Action::Run)]).unwrap();
    assert_eq!(gdb.stopped(ANSWER).unwrap(), Some(0));
    let told = told(&gdb);
    assert!(told.contains("$vCont;s:2#"), "{told}");
    assert!(told.contains("$vCont;c:1;c:2#"), "{told}");
    assert_eq!(gdb.stopped(Duration::from_millis(1)).unwrap(), None);
}

#[test]
fn a_step_without_an_instruction_is_done_again() {
    let (one, two) = (registers(1), registers(2));
    let stopped = "T05thread:01;";
    let mut gdb = client(&["OK", &one, stopped, &one, stopped, &one, stopped, &two]);
    let registers = gdb.registers(0).unwrap();
    assert_eq!(gdb.step(0, &registers).unwrap().ip, 2);
    assert_eq!(told(&gdb).matches("vCont;s:1").count(), 3);
}

#[test]
fn registers_and_words_are_read() {
    let mut gdb = client(&["OK", &registers(99), "0100000000000080", "OK"]);
    let registers = gdb.registers(0).unwrap();
    assert_eq!((registers.sp(), registers.ip), (7 << 32, 99));
    assert_eq!(registers.second_argument(), 4 << 32);
    assert_eq!(registers.flags, 0x246);
    assert_eq!(gdb.read(0, 0x1000).unwrap(), 1 << 63 | 1);
    gdb.write(0, 0x20, &[1, 0xab]).unwrap();
    let told = told(&gdb);
    assert!(told.contains("$m1000,8#") && told.contains("$M20,2:01ab#"));
    assert_eq!(told.matches("$Hg1#").count(), 1, "{told}");
}

#[test]
fn what_is_not_right_is_an_error() {
    let refused = client(&["E22"]).set_breakpoint(16).unwrap_err();
    assert!(refused.to_string().contains("Z1,10,1"), "{refused}");
    assert!(client(&["OK", "0011"]).registers(0).is_err());
    assert!(client(&["OK", "E14"]).read(0, 16).is_err());
    let mut other = client(&["OK", &registers(1), "T05thread:01;"]);
    let registers = other.registers(1).unwrap();
    assert!(other.step(1, &registers).is_err());
    assert!(client(&["W00"]).stopped(ANSWER).is_err());
    assert!(Gdb::over(Script::new(&["", ""])).is_err());
    let ran = ["T02thread:01;", "PacketSize=1000", "vCont;c;C;s;S"];
    assert!(Gdb::over(Script::new(&ran)).is_ok());
    let mut damaged = client(&[]);
    damaged.stream.answers.push_back(b"$OK#00".to_vec());
    assert!(damaged.set_breakpoint(16).is_err());
}
