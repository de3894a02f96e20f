//! Has all macros in it that domains use and does no harm: it must be compiled.
#![no_std]
extern crate alloc;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum A<T> {
    #[default]
    B,
    C(T),
    D {
        a: u8,
    },
}

pub fn a(a: A<u8>) -> alloc::string::String {
    domain_rt::log!("{a:?}");
    assert_eq!(alloc::vec![1, 2].len(), 2);
    matches!(a, A::B).then(|| unreachable!());
    alloc::format!("unsafe {a:?}")
}
