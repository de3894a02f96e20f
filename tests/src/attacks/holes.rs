//! Programs that break the language: safe Rust that the plain compiler takes, `-F unsafe_code` or
//! not, and that does what safe code must never be able to do.
//!
//! Each has a function `extend`, which makes a borrow last for ever (also as something that is not
//! shown to borrow), or `convert`, which turns a value of any type into one of any other; the
//! signature alone is the proof. They are called by the number of the issue of rust-lang/rust that
//! has the hole. [`super::plain`] has the programs compiled without the build's watch, so that a
//! hole which a later compiler closes is noticed.

use super::{Attack, source};

/// A lifetime in the type of a pointer to a function.
const POINTER: &str = "a lifetime in a pointer to a function";
/// A type that the compiler is to find, in the same place.
const INFERRED: &str = "`_` in a pointer to a function";
/// What a lifetime can be hidden behind there.
const HIDDEN: &str = "a type parameter, an alias or `Self` among the arguments of a pointer";
/// What it can be hidden behind, as well.
const PROJECTED: &str = "an associated type in a pointer to a function";
/// A name for a type with a lifetime in it.
const ALIAS: &str = "a public alias with a lifetime in it";
/// A struct that only lives with what lives for ever.
const BOUND: &str = "a struct with a bound by a lifetime";
/// Bounds for all lifetimes.
const RANKED: &str = "`for<'a>`";
/// A trait object has its own implementation beside this one.
const UNSIZED: &str = "a trait implemented for types without a size";
/// What the second opinion says.
const NEXT: &str = "the compiler's next trait solver refuses it";
/// What a closure gives, as an associated type.
const GIVEN: &str = "an associated type beside a bound on what a closure";
/// A bound on what an iterator yields.
const YIELDED_BOUND: &str = "a bound on an associated type among the arguments of its trait";
/// The same of an iterator.
const YIELDED: &str = "what another type's closure or iterator gives";

/// What keeps what an iterator yields.
const HOLDER: &str = "rule `holder`";
/// What is asked for its associated type says how long something lasts.
const ASKED: &str = "an associated type of a type with arguments, lifetimes or references";

/// A program; it has `Box` and `Display`.
macro_rules! hole {
    ($name:literal, $text:literal, $compiling:expr) => {
        source!(
            $name,
            concat!(
                "extern crate alloc;\n#[allow(unused)]\nuse {alloc::boxed::Box, core::fmt::Display};\n",
                $text
            ),
            "",
            $compiling
        )
    };
}

pub(super) const ATTACKS: &[Attack] = &[
    hole!(
        "source-hole-25860-higher-ranked",
        "fn f<'a, 'b>(_: &'a &'b (), x: &'b str) -> &'a str { x }\n\
         pub fn extend(x: &str) -> &'static str { let g: for<'b> fn(&'static &'static (), &'b str) -> &'static str = f; g(&&(), x) }",
        POINTER
    ),
    hole!(
        "source-hole-25860-elided",
        "fn f<'a, 'b>(_: &'a &'b (), x: &'b str) -> &'a str { x }\n\
         pub fn extend(x: &str) -> &'static str { let g: fn(_, &str) -> &'static str = f; g(&&(), x) }",
        INFERRED
    ),
    hole!(
        "source-hole-25860-one-name",
        "fn f<'b>(_: &'static &'b (), x: &'b str) -> &'static str { x }\n\
         pub fn extend(x: &str) -> &'static str { let g: fn(&'static &'static (), &str) -> &'static str = f; g(&&(), x) }",
        POINTER
    ),
    hole!(
        "source-hole-25860-by-a-cast",
        "fn f<'b>(_: &'static &'b (), x: &'b str) -> &'static str { x }\n\
         pub fn extend(x: &str) -> &'static str { (f as fn(_, &str) -> _)(&&(), x) }",
        INFERRED
    ),
    hole!(
        "source-hole-25860-without-a-result",
        "fn f<'b>(_: &'static &'b (), x: &'b str, y: &mut &'static str) { *y = x }\n\
         pub fn extend(x: &str) -> &'static str { let mut y = \"\"; let g: fn(&'static &'static (), &str, &mut &'static str) = f; g(&&(), x, &mut y); y }",
        POINTER
    ),
    hole!(
        "source-hole-25860-type-parameters",
        "fn f<'b>(_: &'static &'b (), x: &'b str) -> &'static str { x }\n\
         fn call<W, O>(g: fn(W, &str) -> O, w: W, x: &str) -> O { g(w, x) }\n\
         pub fn extend(x: &str) -> &'static str { call::<&'static &'static (), &'static str>(f, &&(), x) }",
        HIDDEN
    ),
    hole!(
        "source-hole-25860-type-parameters-of-a-struct",
        "fn f<'b>(_: &'static &'b (), x: &'b str) -> &'static str { x }\n\
         struct Call<W, O>(fn(W, &str) -> O);\n\
         pub fn extend(x: &str) -> &'static str { let g: Call<&'static &'static (), &'static str> = Call(f); (g.0)(&&(), x) }",
        HIDDEN
    ),
    hole!(
        "source-hole-25860-self",
        "trait Call: Sized { fn call<O>(self, g: fn(Self, &str) -> O, x: &str) -> O { g(self, x) } }\n\
         impl Call for &'static &'static () {}\n\
         fn f<'b>(_: &'static &'b (), x: &'b str) -> &'static str { x }\n\
         pub fn extend(x: &str) -> &'static str { let w: &'static &'static () = &&(); w.call::<&'static str>(f, x) }",
        HIDDEN
    ),
    hole!(
        "source-hole-25860-alias",
        "type W = &'static &'static ();\n\
         type O = &'static str;\n\
         fn f<'b>(_: &'static &'b (), x: &'b str) -> &'static str { x }\n\
         pub fn extend(x: &str) -> &'static str { let g: fn(W, &str) -> O = f; g(&&(), x) }",
        HIDDEN
    ),
    hole!(
        "source-hole-25860-public-alias",
        "pub type W = &'static &'static ();\n\
         pub type O = &'static str;\n\
         fn f<'b>(_: &'static &'b (), x: &'b str) -> &'static str { x }\n\
         pub fn extend(x: &str) -> &'static str { let g: fn(W, &str) -> O = f; g(&&(), x) }",
        ALIAS
    ),
    hole!(
        "source-hole-25860-associated-type",
        "pub trait Hides { type W; type O; }\n\
         pub struct M;\n\
         impl Hides for M { type W = &'static &'static (); type O = &'static str; }\n\
         fn f<'b>(_: &'static &'b (), x: &'b str) -> &'static str { x }\n\
         pub fn extend(x: &str) -> &'static str { let g: fn(<M as Hides>::W, &str) -> <M as Hides>::O = f; g(&&(), x) }",
        PROJECTED
    ),
    hole!(
        "source-hole-25860-struct",
        "pub struct W<'a, 'b>(&'a &'b ());\n\
         fn f<'a, 'b>(_: W<'a, 'b>, x: &'b str) -> &'a str { x }\n\
         pub fn extend(x: &str) -> &'static str { let g: fn(W<'static, 'static>, &str) -> &'static str = f; g(W(&&()), x) }",
        POINTER
    ),
    hole!(
        "source-hole-25860-bound-of-a-struct",
        "pub struct W<T: 'static>(Option<T>);\n\
         fn f<'b>(_: W<&'b ()>, x: &'b str) -> Box<dyn Display> { Box::new(x) }\n\
         pub fn extend(x: &str) -> Box<dyn Display> { let g: fn(W<&()>, &str) -> Box<dyn Display> = f; g(W(None), x) }",
        BOUND
    ),
    hole!(
        "source-hole-57893",
        "trait Object<U> { type Output; }\n\
         impl<T: ?Sized, U> Object<U> for T { type Output = U; }\n\
         fn f<T: ?Sized, U>(x: <T as Object<U>>::Output) -> U { x }\n\
         pub fn convert<T, U>(x: T) -> U { f::<dyn Object<U, Output = T>, U>(x) }",
        NEXT
    ),
    hole!(
        "source-hole-57893-by-a-supertrait",
        "trait Object<U> { type Out; }\n\
         impl<T: ?Sized, U> Object<U> for T { type Out = U; }\n\
         trait Sub<T, U>: Object<U, Out = T> {}\n\
         fn f<T: ?Sized, U>(x: <T as Object<U>>::Out) -> U { x }\n\
         fn g<S: ?Sized + Object<U, Out = T>, T, U>(x: T) -> U { f::<S, U>(x) }\n\
         pub fn convert<T, U>(x: T) -> U { g::<dyn Sub<T, U>, T, U>(x) }",
        UNSIZED
    ),
    hole!(
        "source-hole-57893-in-a-where-clause",
        "trait Every {}\n\
         impl<T> Every for T where T: ?Sized {}\n\
         trait Object<U> { type Out; }\n\
         impl<T, U> Object<U> for T where T: Every + ?Sized { type Out = U; }\n\
         fn f<T: ?Sized, U>(x: <T as Object<U>>::Out) -> U { x }\n\
         pub fn convert<T, U>(x: T) -> U { f::<dyn Object<U, Out = T>, U>(x) }",
        UNSIZED
    ),
    hole!(
        "source-hole-57893-by-an-alias",
        "type Same<T> = T;\n\
         trait Object<U> { type Out; }\n\
         impl<T: ?Sized, U> Object<U> for Same<T> { type Out = U; }\n\
         fn f<T: ?Sized, U>(x: <T as Object<U>>::Out) -> U { x }\n\
         pub fn convert<T, U>(x: T) -> U { f::<dyn Object<U, Out = T>, U>(x) }",
        UNSIZED
    ),
    hole!(
        "source-hole-57893-by-a-macro",
        "trait Object<U> { type Out; }\n\
         macro_rules! all { ($($x:tt)*) => { impl<T: $($x)* Sized, U> Object<U> for T { type Out = U; } } }\n\
         all!(?);\n\
         fn f<T: ?Sized, U>(x: <T as Object<U>>::Out) -> U { x }\n\
         pub fn convert<T, U>(x: T) -> U { f::<dyn Object<U, Out = T>, U>(x) }",
        UNSIZED
    ),
    hole!(
        "source-hole-84591",
        "trait Sub<'a, 'b, R>: Super<'a, 'b> {}\n\
         trait Super<'a, 'b> { fn convert<T: ?Sized>(x: &'a T) -> &'b T; }\n\
         fn f<S, T: ?Sized>(x: &T) -> &'static T where S: for<'a, 'b> Sub<'a, 'b, &'b &'a ()> { g::<S, T>(x) }\n\
         fn g<S, T: ?Sized>(x: &T) -> &'static T where S: for<'a, 'b> Super<'a, 'b> { S::convert(x) }\n\
         struct M;\n\
         impl<'a: 'b, 'b> Super<'a, 'b> for M { fn convert<T: ?Sized>(x: &'a T) -> &'b T { x } }\n\
         impl<'a, 'b> Sub<'a, 'b, &'b &'a ()> for M {}\n\
         pub fn extend(x: &str) -> &'static str { f::<M, str>(x) }",
        RANKED
    ),
    hole!(
        "source-hole-84591-one-name",
        "trait Sub<'a, R>: Super<'a> {}\n\
         trait Super<'a> { fn convert<T: ?Sized>(x: &'a T) -> &'static T; }\n\
         fn f<S, T: ?Sized>(x: &T) -> &'static T where S: for<'a> Sub<'a, &'static &'a ()> { g::<S, T>(x) }\n\
         fn g<S, T: ?Sized>(x: &T) -> &'static T where S: for<'a> Super<'a> { S::convert(x) }\n\
         struct M;\n\
         impl<'a: 'static> Super<'a> for M { fn convert<T: ?Sized>(x: &'a T) -> &'static T { x } }\n\
         impl<'a> Sub<'a, &'static &'a ()> for M {}\n\
         pub fn extend(x: &str) -> &'static str { f::<M, str>(x) }",
        RANKED
    ),
    hole!(
        "source-hole-100051",
        "trait Tr { type A; }\n\
         impl<T> Tr for T { type A = (); }\n\
         trait Extend<'a, 'b> { fn extend(self, s: &'a str) -> &'b str; }\n\
         impl<'a, 'b> Extend<'a, 'b> for <&'b &'a () as Tr>::A where for<'c, 'd> &'c &'d (): Tr { fn extend(self, s: &'a str) -> &'b str { s } }\n\
         pub fn extend(x: &str) -> &'static str { <() as Extend<'_, '_>>::extend((), x) }",
        RANKED
    ),
    hole!(
        "source-hole-84366-closure",
        "trait Gives { type A; }\n\
         impl<R, F: Fn() -> R> Gives for F { type A = R; }\n\
         fn f<T: Gives + 'static>(_: &T, x: T::A) -> Box<dyn Display> where T::A: Display { Box::new(x) }\n\
         fn g<T: Display>(x: T) -> Box<dyn Display> { f(&|| -> T { loop {} }, x) }\n\
         pub fn extend(x: &str) -> Box<dyn Display> { g(x) }",
        GIVEN
    ),
    hole!(
        "source-hole-84366-iterator",
        "fn f<I: Iterator + 'static>(_: &I, x: I::Item) -> Box<dyn Display> where I::Item: Display { Box::new(x) }\n\
         fn g<T: Display>(x: T) -> Box<dyn Display> { f(&core::iter::from_fn(|| None::<T>), x) }\n\
         pub fn extend(x: &str) -> Box<dyn Display> { g(x) }",
        YIELDED
    ),
    hole!(
        "source-hole-84366-iterator-by-its-trait",
        "fn f<I: Iterator>(_: &I, x: <I as Iterator>::Item) -> Box<dyn Display + '_> where <I as Iterator>::Item: Display { Box::new(x) }\n\
         fn g<T: Display>(x: T) -> Box<dyn Display> { f(Box::leak(Box::new(core::iter::from_fn(|| None::<T>))), x) }\n\
         pub fn extend(x: &str) -> Box<dyn Display> { g(x) }",
        YIELDED
    ),
    hole!(
        "source-hole-84366-iterator-in-a-trait",
        "trait Show: Iterator + 'static where Self::Item: Display { fn show(&self, x: Self::Item) -> Box<dyn Display> { Box::new(x) } }\n\
         impl<I: Iterator + 'static> Show for I where I::Item: Display {}\n\
         fn g<T: Display>(x: T) -> Box<dyn Display> { core::iter::from_fn(|| None::<T>).show(x) }\n\
         pub fn extend(x: &str) -> Box<dyn Display> { g(x) }",
        YIELDED
    ),
    hole!(
        "source-hole-84366-by-another-name",
        "trait Gives { type A; }\n\
         impl<T, I: Iterator<Item = T>> Gives for I { type A = T; }\n\
         fn f<I: Gives + 'static>(_: &I, x: I::A) -> Box<dyn Display> where I::A: Display { Box::new(x) }\n\
         fn g<T: Display>(x: T) -> Box<dyn Display> { f(&core::iter::from_fn(|| None::<T>), x) }\n\
         pub fn extend(x: &str) -> Box<dyn Display> { g(x) }",
        GIVEN
    ),
    hole!(
        "source-hole-84366-splice",
        "fn f<I: Iterator<Item: Display> + 'static>(mut s: alloc::vec::Splice<'_, I>) -> Option<Box<dyn Display>> { Some(Box::new(s.next()?)) }\n\
         fn g<T: Display>(x: T) -> Option<Box<dyn Display>> { f(alloc::vec![x].splice(.., core::iter::from_fn(|| None::<T>))) }\n\
         pub fn extend(x: &str) -> Option<Box<dyn Display>> { g(x) }",
        YIELDED_BOUND
    ),
    hole!(
        "source-hole-84366-any",
        "fn f<I: Iterator + 'static>(mut s: alloc::vec::Splice<'_, I>) -> Option<Box<dyn core::any::Any>> { Some(Box::new(s.next()?)) }\n\
         fn g<T>(x: T) -> Option<Box<dyn core::any::Any>> { f(alloc::vec![x].splice(.., core::iter::from_fn(|| None::<T>))) }\n\
         pub fn extend(x: &str) -> Option<&'static str> { g(x)?.downcast().ok().map(|x| *x) }",
        "`core::any`"
    ),
    hole!(
        "source-hole-84366-drop",
        "pub trait Every {}\n\
         impl<T> Every for T {}\n\
         struct Late<'a>(&'a core::cell::Cell<u64>);\n\
         impl Drop for Late<'_> { fn drop(&mut self) { self.0.set(1) } }\n\
         fn f<I: Iterator + 'static>(mut s: alloc::vec::Splice<'_, I>) -> Option<Box<dyn Every>> { Some(Box::new(s.next()?)) }\n\
         fn g<T>(x: T) -> Option<Box<dyn Every>> { f(alloc::vec![x].splice(.., core::iter::from_fn(|| None::<T>))) }\n\
         pub fn extend(x: &core::cell::Cell<u64>) -> Option<Box<dyn Every>> { g(Late(x)) }",
        HOLDER
    ),
    hole!(
        "source-hole-84366-peekable",
        "pub fn later(x: &mut u64, first: &'static mut u64) -> Box<dyn FnOnce() -> u64 + Send + 'static> {\n\
         let mut first = Some(first);\n\
         let mut it = core::iter::from_fn(move || first.take().map(|f| -> &mut u64 { f })).peekable();\n\
         if let Some(place) = it.peek_mut() { *place = x; }\n\
         Box::new(move || it.next().map_or(0, |r| { *r += 1; *r })) }",
        HOLDER
    ),
    hole!(
        "source-hole-84366-flatten",
        "use {alloc::rc::Rc, core::cell::Cell};\n\
         pub struct Twice<T>(Rc<Cell<Option<T>>>, u8);\n\
         impl<T> Iterator for Twice<T> { type Item = Rc<Cell<Option<T>>>; fn next(&mut self) -> Option<Self::Item> { self.1 += 1; (self.1 < 3).then(|| self.0.clone()) } }\n\
         pub fn later<'x>(x: &'x u64) -> Box<dyn FnOnce() -> u64 + 'static> {\n\
         let mut it = core::iter::repeat_with(|| Twice::<&'x u64>(Rc::new(Cell::new(None)), 0)).flatten();\n\
         if let Some(cell) = it.next() { cell.set(Some(x)); }\n\
         Box::new(move || it.next().and_then(|cell| cell.take()).map_or(0, |x| *x)) }",
        HOLDER
    ),
    hole!(
        "source-hole-84366-self-item",
        "pub trait Give: Iterator { type G; }\n\
         impl<I: Iterator> Give for I { type G = Self::Item; }\n\
         fn keep<I: Give + 'static>(_: I, x: I::G) -> Box<dyn Display> where I::G: Display { Box::new(x) }\n\
         fn g<T: Display>(x: T) -> Box<dyn Display> { keep(core::iter::from_fn(|| None::<T>), x) }\n\
         pub fn extend(x: &str) -> Box<dyn Display> { g(x) }",
        "an associated type (`G`) that is one of another type"
    ),
    hole!(
        "source-hole-84366-small-letters",
        "fn f<i: Iterator + 'static>(_: &i, x: i::Item) -> Box<dyn Display> where i::Item: Display { Box::new(x) }\n\
         fn g<T: Display>(x: T) -> Box<dyn Display> { f(&core::iter::from_fn(|| None::<T>), x) }\n\
         pub fn extend(x: &str) -> Box<dyn Display> { g(x) }",
        YIELDED
    ),
    hole!(
        "source-hole-25860-inferred",
        "fn f<'b, T: 'static>(_: &'static &'b (), v: &'b mut T) -> &'static mut T { v }\n\
         fn p<T: 'static>(_: &'static &'static (), _: &mut T) -> &'static mut T { loop {} }\n\
         fn q<T: 'static>(_: &'static &'static (), _: &mut T) -> &'static mut T { loop {} }\n\
         #[allow(unused_assignments)]\n\
         pub fn extend<T: 'static>(x: &mut T) -> &'static mut T { let mut g = [p::<T>, q::<T>][0]; g = f::<T>; g(&&(), x) }",
        "rule `pointer`"
    ),
    hole!(
        "source-hole-25860-without-a-pointer",
        "pub trait Has { type A; }\n\
         impl<T> Has for &T { type A = (); }\n\
         fn f<'b>(_: <&'static &'b () as Has>::A, x: &'b str) -> &'static str { x }\n\
         fn g<F: Fn((), &str) -> &'static str>(f: F, x: &str) -> &'static str { f((), x) }\n\
         pub fn extend(x: &str) -> &'static str { g(f, x) }",
        ASKED
    ),
    hole!(
        "source-hole-25860-without-a-name",
        "pub trait Has { type A; }\n\
         impl<T> Has for &T { type A = (); }\n\
         fn f<T: Display>(_: <&'static T as Has>::A, x: T) -> Box<dyn Display> { Box::new(x) }\n\
         fn g<F: Fn((), X) -> Box<dyn Display>, X>(f: F, x: X) -> Box<dyn Display> { f((), x) }\n\
         pub fn extend(x: &str) -> Box<dyn Display> { g(f::<&str>, x) }",
        ASKED
    ),
    hole!(
        "source-hole-25860-in-a-bound",
        "pub trait Of<W> { type A; }\n\
         pub struct M;\n\
         impl<W> Of<W> for M { type A = (); }\n\
         fn f<'b, T: Of<&'static &'b ()>>(_: T::A, x: &'b str) -> &'static str { x }\n\
         fn g<'x, F: Fn((), &'x str) -> &'static str>(f: F, x: &'x str) -> &'static str { f((), x) }\n\
         pub fn extend(x: &str) -> &'static str { g(f::<M>, x) }",
        "a bound by a trait with a lifetime or a reference"
    ),
    hole!(
        "source-hole-100051-one-name",
        "pub trait Has { type A; }\n\
         impl<T> Has for &T { type A = (); }\n\
         pub trait Extend<'a> { fn extend(self, x: &'a str) -> &'static str; }\n\
         impl<'a> Extend<'a> for <&'static &'a () as Has>::A { fn extend(self, x: &'a str) -> &'static str { x } }\n\
         pub fn extend(x: &str) -> &'static str { <() as Extend>::extend((), x) }",
        "an implementation for an associated type"
    ),
    hole!(
        "source-hole-57893-by-a-name-for-an-object",
        "pub trait Object { type Out; }\n\
         pub trait Sub: Object<Out = u8> {}\n\
         pub trait Make { type R: ?Sized; }\n\
         pub struct M;\n\
         impl Make for M { type R = dyn Sub; }\n\
         type Name = <M as Make>::R;\n\
         impl Object for Name { type Out = &'static str; }",
        "a name for a trait object"
    ),
];
