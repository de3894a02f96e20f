//! The system calls (`asm/unistd_64.h`; their arguments as `man 2` has them), by subject.

mod changes;
mod epolls;
mod identity;
mod io;
mod life;
pub mod limits;
mod maps;
mod messages;
mod opening;
mod paths;
mod remap;
mod signalling;
mod sockets;
mod syncing;
mod times;
mod volumes;
mod waits;

use crate::disk::Disk;
use crate::errno::{EINTR, EINVAL, ENOSYS, Error, SIGSEGV};
use crate::memory;
use crate::task::{After, Task};
use changes::AT_REMOVEDIR;
use domain_rt::thread;
use identity::Kind;
use life::Birth;

/// The directory that is meant by no descriptor.
const AT_FDCWD: i32 = -100;
const AT_EMPTY_PATH: u64 = 0x1000;
const AT_SYMLINK_NOFOLLOW: u64 = 0x100;
const O_CLOEXEC: u64 = 0x8_0000;
const O_NONBLOCK: u64 = 0x800;

type Result<T> = core::result::Result<T, Error>;

/// What comes of a call if it is no value.
enum Other {
    Error(Error),
    /// The registers are all set.
    NoResult,
    /// The thread ends, or all threads of its process, with a status as `wait` has it.
    Leave(i32),
    End(i32),
}

/// The first three arguments, as numbers of users or groups.
fn three(a: [u64; 6]) -> [u32; 3] {
    [a[0], a[1], a[2]].map(|id| id as u32)
}

impl Task {
    /// Answers the program.
    #[inline]
    pub fn call(&mut self) -> After {
        let r = self.program.registers;
        let a = [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9];
        self.program.asked = r.rax;
        self.program.registers.rax = match self.answer(r.rax, a) {
            Ok(value) => value,
            Err(Other::Error(error)) => {
                if error == EINTR {
                    self.broken = Some(r.rax);
                }
                error.result()
            }
            Err(Other::NoResult) => return After::Run,
            Err(Other::Leave(status)) => return After::Leave(status),
            Err(Other::End(status)) => return After::End(status),
        };
        After::Run
    }

    /// What comes of a call by its number (`asm/unistd_64.h`). One table of all: to ask one part
    /// after the other would take longer than many a call.
    #[inline]
    fn answer(&mut self, number: u64, a: [u64; 6]) -> core::result::Result<u64, Other> {
        let result = match number {
            0 => self.read(a[0], a[1], a[2]),
            1 => self.write(a[0], a[1], a[2]),
            2 => self.open(AT_FDCWD, a[0], a[1], a[2]),
            3 => self.close(a[0]),
            4 => self.stat(AT_FDCWD, a[0], a[1], 0),
            6 => self.stat(AT_FDCWD, a[0], a[1], AT_SYMLINK_NOFOLLOW),
            5 => self.stat(a[0] as i32, 0, a[1], AT_EMPTY_PATH),
            7 => self.poll(a[0], a[1], a[2] as i32),
            8 => self.seek(a[0], a[1], a[2]),
            9 => self.map(a),
            10 => self.protect(a[0], a[1], a[2]),
            11 => self.unmap(a[0], a[1]),
            12 => self.set_heap(a[0]),
            // Sets of signals have eight bytes.
            13 | 14 if a[3] != 8 => Err(EINVAL),
            130 if a[1] != 8 => Err(EINVAL),
            13 => self.set_handler(a[0] as u32, a[1], a[2]),
            14 => self.change_mask(a[0], a[1], a[2]),
            15 => match self.leave_handler() {
                true => return Err(Other::NoResult),
                false => return Err(Other::End(SIGSEGV as i32)),
            },
            16 => self.device(a[0], a[1], a[2]),
            17 => self.read_at(a[0], a[1], a[2], a[3]),
            18 => self.write_at(a[0], a[1], a[2], a[3]),
            19 => self.read_pieces(a[0], (a[1], a[2]), None),
            20 => self.write_pieces(a[0], (a[1], a[2]), None),
            21 => self.is_there(AT_FDCWD, a[0], a[1], 0),
            22 => self.pipe(a[0], 0),
            24 => {
                thread::yield_now();
                Ok(0)
            }
            25 => self.remap([a[0], a[1], a[2], a[3], a[4]]),
            26 => self.store(a[0], a[1], a[2]),
            28 => self.advise(a[0], a[1], a[2]),
            34 => self.until(|| None::<u64>),
            23 => self.select([a[0], a[1], a[2], a[3], a[4]]),
            102 => Ok(self.process.cred().user.real.into()),
            104 => Ok(self.process.cred().group.real.into()),
            107 => Ok(self.process.cred().user.effective.into()),
            108 => Ok(self.process.cred().group.effective.into()),
            36 => self.timer(a[0], a[1]),
            37 => self.alarm(a[0]),
            38 => self.set_timer(a[0], a[1], a[2]),
            41 => self.socket(a[0], a[1], a[2]),
            42 => self.connect(a[0], a[1], a[2]),
            43 => self.accept(a[0], a[1], a[2], 0),
            44 => self.send_to(a),
            45 => self.receive_from(a),
            46 => self.send_message(a[0], a[1], a[2]),
            47 => self.receive_message(a[0], a[1], a[2]),
            48 => self.shut(a[0], a[1]),
            49 => self.bind(a[0], a[1], a[2]),
            50 => self.listen(a[0], a[1]),
            51 => self.put_address_of(a[0], (a[1], a[2]), false),
            52 => self.put_address_of(a[0], (a[1], a[2]), true),
            53 => self.socket_pair(a[0], a[1], a[2], a[3]),
            54 => self.set_option([a[0], a[1], a[2], a[3], a[4]]),
            55 => self.put_option([a[0], a[1], a[2], a[3], a[4]]),
            73 => self.lock_file(a[0], a[1]),
            81 => self.change_directory_to(a[0]),
            97 => self.limit(0, a[0], 0, a[1]),
            98 => self.usage(a[0], a[1]),
            99 => self.machine(a[0]),
            100 => self.ticks(a[0]),
            103 => self.kernel_log(a[0], a[1], a[2]),
            105 => self
                .become_other(Kind::User, |ids, may| ids.set(a[0] as u32, may))
                .map(|()| 0),
            106 => self
                .become_other(Kind::Group, |ids, may| ids.set(a[0] as u32, may))
                .map(|()| 0),
            113 => self
                .become_other(Kind::User, |ids, may| {
                    ids.set_two([a[0] as u32, a[1] as u32], may)
                })
                .map(|()| 0),
            114 => self
                .become_other(Kind::Group, |ids, may| {
                    ids.set_two([a[0] as u32, a[1] as u32], may)
                })
                .map(|()| 0),
            115 => self.put_groups(a[0], a[1]),
            116 => self.set_groups(a[0], a[1]),
            117 => self
                .become_other(Kind::User, |ids, may| ids.set_three(three(a), may))
                .map(|()| 0),
            118 => self.put_ids(&self.process.cred().user, [a[0], a[1], a[2]]),
            119 => self
                .become_other(Kind::Group, |ids, may| ids.set_three(three(a), may))
                .map(|()| 0),
            120 => self.put_ids(&self.process.cred().group, [a[0], a[1], a[2]]),
            122 => self.use_files_as(Kind::User, a[0]),
            123 => self.use_files_as(Kind::Group, a[0]),
            124 => self.session_of(a[0] as u32).map(u64::from),
            125 => self.capabilities(a[0], a[1]),
            127 => self.pending_signals(a[0], a[1]),
            131 => self.set_signal_stack(a[0], a[1]),
            137 => self.volume_at(a[0], a[1]),
            138 => self.volume_of(a[0], a[1]),
            140 => self.priority(a[0], a[1]),
            141 => self.set_priority(a[0], a[1], a[2]),
            149..=152 => Ok(0),
            157 => self.control_self(a[0], a[1], a[2]),
            160 => self.limit(0, a[0], a[1], 0),
            169 => self.reboot(a[0], a[1], a[2]),
            188 | 191 | 194 | 197 => self.extended_at(a[0], true),
            189 | 192 | 195 | 198 => self.extended_at(a[0], false),
            190 | 193 | 196 | 199 => self.extended_of(a[0]),
            204 => self.processors(a[1], a[2]),
            229 => self.resolution(a[0], a[1]),
            270 => self.select_masked(a),
            271 => self.poll_masked([a[0], a[1], a[2], a[3], a[4]]),
            299 => self.receive_messages([a[0], a[1], a[2], a[3], a[4]]),
            302 => self.limit(a[0], a[1], a[2], a[3]),
            307 => self.send_messages([a[0], a[1], a[2], a[3]]),
            309 => self.processor(a[0], a[1]),
            436 => self.close_range(a[0], a[1], a[2]),
            32 => self.duplicate(a[0]),
            33 => self.duplicate_to(a[0], a[1], false),
            35 => self.sleep(0, 0, a[0], a[1]),
            39 => Ok(self.process.id.into()),
            186 => Ok(self.id.into()),
            56 => self.clone(Birth {
                flags: a[0],
                // A number beyond the signals asks for no signal.
                signal: Some(a[0] & 0xff).filter(|it| *it <= 64).unwrap_or(0),
                stack: a[1],
                parent_word: a[2],
                child_word: a[3],
                segment: a[4],
            }),
            57 => self.clone(Birth::default()),
            58 => self.fork_for_exec(),
            59 => {
                // What it has replaced has no result.
                self.exec(a[0], a[1], a[2]).map_err(Other::Error)?;
                return Err(Other::NoResult);
            }
            60 => return Err(Other::Leave((a[0] as i32 & 0xff) << 8)),
            231 => return Err(Other::End((a[0] as i32 & 0xff) << 8)),
            61 => self.wait_child_for([a[0], a[1], a[2], a[3]]),
            62 => self.signal(a[1], |task, signal| task.kill(a[0] as i32, signal)),
            63 => self.name(a[0]),
            72 => self.control(a[0], a[1], a[2]),
            74 => self.commit(a[0], false),
            75 => self.commit(a[0], true),
            76 => self.set_length_at(a[0], a[1]),
            77 => self.set_length(a[0], a[1]),
            79 => self.put_path(a[0], a[1]),
            80 => self.change_directory(a[0]),
            82 => self.rename((AT_FDCWD, a[0]), (AT_FDCWD, a[1]), 0),
            83 => self.make_directory(AT_FDCWD, a[0], a[1]),
            84 => self.remove(AT_FDCWD, a[0], AT_REMOVEDIR),
            85 => self.open(AT_FDCWD, a[0], opening::CREATES, a[1]),
            86 => self.add_name((AT_FDCWD, a[0]), (AT_FDCWD, a[1]), 0),
            87 => self.remove(AT_FDCWD, a[0], 0),
            88 => self.make_link(a[0], AT_FDCWD, a[1]),
            89 => self.read_link(AT_FDCWD, a[0], a[1], a[2]),
            90 => self.set_mode(AT_FDCWD, a[0], a[1]),
            91 => self.set_mode_of(a[0], a[1]),
            92 => self.set_owner((AT_FDCWD, a[0]), [a[1], a[2]], 0),
            93 => self.set_owner_of(a[0], [a[1], a[2]]),
            94 => self.set_owner((AT_FDCWD, a[0]), [a[1], a[2]], AT_SYMLINK_NOFOLLOW),
            95 => Ok(self.set_file_mask(a[0])),
            96 => self.time_of_day(a[0]),
            109 => self.set_group(a[0] as u32, a[1] as u32).map(|()| 0),
            110 => Ok(self.parent().into()),
            111 => self.group_of(0).map(u64::from),
            112 => self.begin_session().map(u64::from),
            121 => self.group_of(a[0] as u32).map(u64::from),
            130 => return self.suspend(a[0]),
            132 => self.set_whole_times(a[0], a[1]),
            133 => self.make_node(AT_FDCWD, a[0], a[1], a[2]),
            158 => self.set_segment(a[0], a[1]),
            162 => self.sync_disk(Disk::sync),
            187 => self.read_ahead(a[0], a[1], a[2]),
            200 => self.signal(a[1], |task, signal| {
                task.kill_thread(None, a[0] as u32, signal)
            }),
            201 => self.seconds(a[0]),
            202 => self.futex(a),
            218 => {
                self.clear_at = a[0];
                Ok(self.id.into())
            }
            213 => self.make_set(a[0] as i32, 0),
            217 => self.entries(a[0], a[1], a[2]),
            221 => self.advise_file(a[0], a[1], a[2], a[3]),
            228 => self.clock(a[0], a[1]),
            230 => self.sleep(a[0], a[1], a[2], a[3]),
            232 => self.wait_for_set(a, None),
            233 => self.change_set([a[0], a[1], a[2], a[3]]),
            234 => self.signal(a[2], |task, signal| {
                task.kill_thread(Some(a[0] as u32), a[1] as u32, signal)
            }),
            235 => self.set_micro_times(AT_FDCWD, a[0], a[1]),
            247 => self.wait_child_info([a[0], a[1], a[2], a[3], a[4]]),
            257 => self.open(a[0] as i32, a[1], a[2], a[3]),
            258 => self.make_directory(a[0] as i32, a[1], a[2]),
            259 => self.make_node(a[0] as i32, a[1], a[2], a[3]),
            260 => self.set_owner((a[0] as i32, a[1]), [a[2], a[3]], a[4]),
            261 => self.set_micro_times(a[0] as i32, a[1], a[2]),
            262 => self.stat(a[0] as i32, a[1], a[2], a[3]),
            263 => self.remove(a[0] as i32, a[1], a[2]),
            264 => self.rename((a[0] as i32, a[1]), (a[2] as i32, a[3]), 0),
            265 => self.add_name((a[0] as i32, a[1]), (a[2] as i32, a[3]), a[4]),
            266 => self.make_link(a[0], a[1] as i32, a[2]),
            267 => self.read_link(a[0] as i32, a[1], a[2], a[3]),
            268 => self.set_mode(a[0] as i32, a[1], a[2]),
            269 => self.is_there(a[0] as i32, a[1], a[2], 0),
            439 => self.is_there(a[0] as i32, a[1], a[2], a[3]),
            273 => {
                self.robust = a[0];
                Ok(0)
            }
            277 => self.sync_range(a[0], a[1], a[2], a[3]),
            280 => self.set_times(a[0] as i32, a[1], a[2], a[3]),
            285 => self.allocate(a[0], a[1], a[2], a[3]),
            281 => self.wait_for_set(a, Some(a[4])),
            284 => self.counter(a[0], 0),
            288 => self.accept(a[0], a[1], a[2], a[3]),
            290 => self.counter(a[0], a[1]),
            291 => self.make_set(1, a[0]),
            292 => self.duplicate_to_other(a[0], a[1], a[2]),
            293 => self.pipe(a[0], a[1]),
            295 => self.read_pieces(a[0], (a[1], a[2]), Some(a[3])),
            296 => self.write_pieces(a[0], (a[1], a[2]), Some(a[3])),
            306 => self.sync_of(a[0]),
            316 => self.rename((a[0] as i32, a[1]), (a[2] as i32, a[3]), a[4]),
            318 => self.random_bytes(a[0], a[1]),
            332 => self.stat_more([a[0], a[1], a[2], a[3], a[4]]),
            435 => self.clone_by_list(a[0], a[1]),
            // Threads are not told where they run; what asks for that goes on without.
            334 => Err(ENOSYS),
            _ => self.absent(number),
        };
        result.map_err(Other::Error)
    }

    /// A call that there is not.
    #[cold]
    fn absent(&self, number: u64) -> Result<u64> {
        let told = self.process.told.lock();
        self.process.system.note_missing(&told.path, number);
        Err(ENOSYS)
    }

    /// Gets numbers from the program's memory.
    pub fn get<const COUNT: usize>(&self, at: u64) -> Result<[u64; COUNT]> {
        memory::read_words(&self.program.mm.space, at)
    }

    /// Puts numbers into the program's memory.
    pub(super) fn put(&self, at: u64, words: &[u64]) -> Result<u64> {
        memory::write_words(&self.program.mm.space, at, words).map(|()| 0)
    }
}
