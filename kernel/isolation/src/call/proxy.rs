//! The macro that writes a proxy.

/// Writes a proxy for one interface: a type over [`Proxy`](crate::Proxy) that implements the
/// interface's trait.
///
/// `idlc` emits the invocations; see `kernel/proxies`. For each method: `moved` names the arguments
/// that own something, `budget` is [`Method::budget`], `frees` is [`Method::frees`], `seen` are
/// arguments of which a trace notes the number, and some of which it notes the length, four at the
/// most, and `fails` is the pattern of an error that is an `RpcError`.
#[macro_export]
macro_rules! proxy {
    ($proxy:ident : $interface:path, $label:literal {
        $( fn $method:ident(&self $(, $argument:ident : $type:ty)* $(,)?) -> $result:ty ; moved [$($moved:ident),*] ; budget $budget:expr ; frees $frees:expr ; seen [$($number:ident),*] [$($length:ident),*] ; fails ($fails:pat) ; )*
    }) => {
        /// The proxy of the interface; generated.
        #[repr(transparent)]
        pub struct $proxy($crate::Proxy);

        impl $proxy {
            /// What the registry has of it. `number` is that of the interface.
            pub const fn entry(number: u64) -> $crate::ProxyEntry {
                /// A proxy whose calls are counted.
                #[repr(transparent)]
                struct Counting($proxy);
                #[allow(non_camel_case_types)]
                enum Index { $($method),* }
                // The pattern of a plain `RpcError` is `_`.
                #[allow(clippy::redundant_pattern_matching)]
                impl $interface for Counting {
                    $(
                        #[inline(never)]
                        fn $method(&self $(, $argument: $type)*) -> $result {
                            use $crate::call::count;
                            // SAFETY: this is a generated proxy.
                            let (place, is_timed) =
                                unsafe { count::begin::<{ Index::$method as usize }>(&self.0.0) };
                            // Two calls, so that the usual one keeps no time.
                            if is_timed {
                                let words = [$($number as u64,)* $(<[_]>::len(&$length) as u64),*];
                                let begun = count::begun(&self.0.0, Index::$method as u32, &words);
                                let result = <$proxy as $interface>::$method(&self.0 $(, $argument)*);
                                count::end(&self.0.0, place, begun, matches!(result, Err($fails)));
                                return result;
                            }
                            let result = <$proxy as $interface>::$method(&self.0 $(, $argument)*);
                            if matches!(result, Err($fails)) {
                                count::end(&self.0.0, place, 0, true);
                            }
                            result
                        }
                    )*
                }
                const WORDS: usize = [$(stringify!($method)),*].len() + $crate::call::handle::TABLE_HEAD;
                static LIVE: [core::sync::atomic::AtomicUsize; WORDS] =
                    [const { core::sync::atomic::AtomicUsize::new(0) }; WORDS];
                const fn table(none: *const dyn $interface) -> *const usize {
                    // SAFETY: a trait object pointer is two words, data and method table (see
                    // `abi::handle`).
                    let raw: $crate::abi::handle::RawHandle = unsafe { core::mem::transmute(none) };
                    raw.vtable.cast()
                }
                let plain = table(core::ptr::null::<$proxy>());
                let counting = table(core::ptr::null::<Counting>());
                // SAFETY: both are tables of the interface, and of as many words: all methods, and
                // what is in front of them.
                unsafe { $crate::ProxyEntry::new(number, $label, &LIVE, plain, counting) }
            }
        }

        impl $interface for $proxy {
            $(
                #[allow(unused_mut)]
                #[inline(never)]
                fn $method(&self $(, mut $argument: $type)*) -> $result {
                    const {
                        use $crate::abi::bounds::LARGEST_BY_VALUE;
                        let arguments = 0 $(+ size_of::<$type>())*;
                        assert!(arguments <= LARGEST_BY_VALUE, "arguments take too much stack");
                        let result = size_of::<$result>();
                        assert!(result <= LARGEST_BY_VALUE, "a result takes too much stack");
                    }
                    // Items of a block hide parameters of its function, so they have names that
                    // `idlc` lets no parameter have.
                    fn __stub() -> $result {
                        Err($crate::abi::RpcError::DomainCrashed.into())
                    }
                    static METHOD: $crate::Method =
                        $crate::Method::new(__stub as *const (), $label, stringify!($method), $budget, $frees);
                    fn __forward(proxy: &$crate::Proxy $(, $argument: $type)*) -> $result {
                        // SAFETY: the proxy was made for an object of this interface.
                        let object: &dyn $interface = unsafe { core::mem::transmute(proxy.inner()) };
                        object.$method($($argument),*)
                    }
                    #[unsafe(naked)]
                    unsafe extern "C" fn __trampoline() {
                        core::arch::naked_asm!(
                            "mov rax, gs:[{top}]",
                            "lea r11, [rip + {info}]",
                            "mov [rax + {sp}], rsp", "mov [rax + {rbx}], rbx", "mov [rax + {rbp}], rbp",
                            "mov [rax + {r12}], r12", "mov [rax + {r13}], r13", "mov [rax + {r14}], r14",
                            "mov [rax + {r15}], r15", "mov [rax + {rdi}], rdi", "mov [rax + {method}], r11",
                            "jmp {forward}",
                            info = sym METHOD, forward = sym __forward, top = const $crate::abi::words::TOP,
                            sp = const $crate::call::offsets::SP, rbx = const $crate::call::offsets::RBX,
                            rbp = const $crate::call::offsets::RBP, r12 = const $crate::call::offsets::R12,
                            r13 = const $crate::call::offsets::R13, r14 = const $crate::call::offsets::R14,
                            r15 = const $crate::call::offsets::R15, rdi = const $crate::call::offsets::RDI,
                            method = const $crate::call::offsets::METHOD,
                        )
                    }
                    let proxy = &self.0;
                    let block = proxy.domain();
                    let mut record = core::mem::MaybeUninit::<$crate::Record>::uninit();
                    let record = record.as_mut_ptr();
                    // SAFETY: the record is in this frame, linked by `enter` and unlinked on every
                    // way out. The trampoline has the signature that it is given here: it only
                    // saves registers and jumps to `forward`. What is transferred really crosses,
                    // in the direction given.
                    unsafe {
                        if $crate::call::enter(record, block) == $crate::call::Entered::AskAdmit
                            && let Err(error) = $crate::call::admit(record, block, &METHOD)
                        {
                            return Err(error.into());
                        }
                        (*block).count_call();
                        // What crosses has one owner at every moment, and whoever that is stays in
                        // memory as long as the record is linked: so everything is handed over, or
                        // dropped if that cannot be done, between `enter` and `leave`.
                        $(
                            let inward = $crate::call::handle::inward(record, block);
                            let _ = $crate::abi::Exchangeable::transfer(&mut $moved, &inward);
                        )*
                        if (false $(|| $crate::call::has_handles(&$moved))*)
                            && $crate::call::has_failed(record)
                        {
                            $( drop($moved); )*
                            return Err($crate::call::give_up(record).into());
                        }
                        let call: unsafe fn(&$crate::Proxy $(, $type)*) -> $result =
                            core::mem::transmute(__trampoline as *const ());
                        // Taken apart and put together again, so that no part is read wider than
                        // the callee has written it: the processor cannot forward such a store to
                        // the load.
                        let result = match call(proxy $(, $argument)*) {
                            Ok(mut value) => {
                                let outward = $crate::call::handle::outward(record);
                                let _ = $crate::abi::Exchangeable::transfer(&mut value, &outward);
                                Ok(value)
                            }
                            Err(mut error) => {
                                let outward = $crate::call::handle::outward(record);
                                let _ = $crate::abi::Exchangeable::transfer(&mut error, &outward);
                                Err(error)
                            }
                        };
                        if $crate::call::has_handles(&result) && $crate::call::has_failed(record) {
                            drop(result);
                            return Err($crate::call::give_up(record).into());
                        }
                        if $crate::call::leave(record) == $crate::call::Left::Clean {
                            return result;
                        }
                        match $crate::call::outcome(record) {
                            $crate::call::Outcome::Returned => result,
                            $crate::call::Outcome::CalleeDied => {
                                drop(result);
                                Err($crate::abi::RpcError::DomainCrashed.into())
                            }
                            $crate::call::Outcome::CallerDied => {
                                drop(result);
                                $crate::call::unwind_further(record)
                            }
                        }
                    }
                }
            )*
        }
    };
}

// Results are dropped whatever they are, and nobody makes the calls.
#[cfg(test)]
#[allow(dropping_copy_types, dead_code)]
mod tests {
    use abi::RpcResult;

    trait Odd {
        fn odd(&self, stub: u8, forward: u8, trampoline: u8, record: u8) -> RpcResult<()>;
        fn proxy(&self, block: u8, result: u8, method: u8, count: u8) -> RpcResult<()>;
    }

    proxy!(OddProxy: Odd, "Odd" {
        fn odd(&self, stub: u8, forward: u8, trampoline: u8, record: u8) -> RpcResult<()>; moved []; budget 0; frees false; seen [stub, trampoline] []; fails (_);
        fn proxy(&self, block: u8, result: u8, method: u8, count: u8) -> RpcResult<()>; moved []; budget 0; frees false; seen [block, result, method, count] []; fails (_);
    });

    /// That it compiles is what counts: a parameter is never taken for something of the macro's.
    #[test]
    fn a_parameter_may_be_called_like_something_that_a_proxy_has() {
        assert_eq!(OddProxy::entry(1).methods(), 2);
    }
}
