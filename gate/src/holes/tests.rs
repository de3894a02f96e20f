//! Each shape in several guises, and decent code that looks like one.

use super::*;

fn all(text: &str) -> Vec<String> {
    find(text).expect("it is Rust").found
}

fn found(text: &str) -> usize {
    all(text).len()
}

#[test]
fn decent_code_passes() {
    for text in [
        "pub struct A<'a> { a: &'a str } impl<'a> A<'a> { fn new(a: &'a str) -> Self { A { a } } }",
        "impl<'a> Iterator for A<'a> { type Item = &'a str; fn next(&mut self) -> Option<Self::Item> { None } }",
        "impl<T: Block + ?Sized> Block for &T { fn a(&self) {} }",
        "fn a(f: impl FnOnce() + Send + 'static, g: &mut dyn Iterator<Item = &[u8]>) {}",
        "pub type Main = fn(&Env) -> Result<i32, Stop>; type Test = (&'static u8, u8);",
        "fn a<T>(make: fn(&Lab) -> RpcResult<T>, all: [fn() -> u8; 4]) {}",
        "impl<S: Fn() + Send + 'static> Gate for Keeper<S> { fn a(&self) {} }",
        "fn a(it: core::iter::Map<u8, u8>, b: xs::Output) { format_args!(\"{0} {a}\", 1, a = 2); }",
        "fn a<T: Tree>(x: T::Error) -> <T as Tree>::Name { fn b<'a>(x: &'a u8) -> &'a u8 { x } x }",
    ] {
        assert_eq!(found(text), 0, "{text}: {:?}", all(text));
    }
}

#[test]
fn names_of_lifetimes() {
    for text in [
        "fn a<'a, 'b>(x: &'a u8, y: &'b u8) {}",
        "impl<'a> A<'a> { fn b<'b>(&self, x: &'b u8) {} }",
        "trait A<'a> { fn b<'b>(x: &'b u8); }",
        "impl<'a, 'b> A for B<'a, 'b> {}",
        "struct A<'a, 'b>(&'a &'b ());",
        "fn a<T>() where for<'a> &'a T: B {}",
        "fn a(f: impl for<'a> Fn(&'a u8)) {}",
        "fn a(f: &dyn for<'a> Fn(&'a u8)) {}",
        "trait A { type B<'a>; }",
        "fn a() { format_args!(\"{}\", { fn b<'a, 'b>(x: &'a u8, y: &'b u8) {} 1 }); }",
    ] {
        assert_eq!(found(text), 1, "{text}: {:?}", all(text));
    }
}

#[test]
fn pointers_to_functions() {
    for text in [
        "fn a() { let f: fn(_, &u8) -> u8 = b; }",
        "fn a() { let f = b as fn(&u8) -> _; }",
        "fn a() { let f: fn(&'static u8) = b; }",
        "fn a() { let f: fn(&u8) -> &'static u8 = b; }",
        "fn a<'x>(f: fn(&'x u8)) {}",
        "fn a<W>(f: fn(W, &u8) -> u8) {}",
        "fn a<W>(f: fn(Option<W>)) {}",
        "fn a<N: Q>(f: fn(N::W)) {}",
        "fn a(f: fn(<N as Q>::W)) {}",
        "fn a<N: Q>(f: fn(&u8) -> N::W) {}",
        "type W = &'static u8; struct A(fn(W));",
        "use b::W as V; use c::V as X; mod b { pub(crate) type W = u8; } struct A(fn(X));",
        "impl A { fn a(f: fn(Self)) {} }",
        "fn a() { let f: for<'x> fn(&'x u8) = b; }",
    ] {
        assert!(found(text) >= 1, "{text}");
    }
}

#[test]
fn types_that_hide_a_lifetime() {
    for text in [
        "pub type W = &'static u8;",
        "pub(crate) type W<'a> = &'a u8;",
        "struct A<T: 'static>(T);",
        "struct A<T>(T) where T: 'static;",
        "enum A<'a, T: 'a> { A(&'a T) }",
    ] {
        assert_eq!(found(text), 1, "{text}: {:?}", all(text));
    }
}

#[test]
fn traits_for_types_without_a_size() {
    for text in [
        "impl<T: ?Sized, U> Object<U> for T { type Output = U; }",
        "impl<T> Object for T where T: Other + ?Sized { }",
        "impl<T: ?Sized> Object for Alias<T> { }",
    ] {
        assert!(found(text) >= 1, "{text}: {:?}", all(text));
    }
}

#[test]
fn what_closures_give() {
    for text in [
        "impl<R, F: Fn() -> R> A for F { type B = R; }",
        "impl<R, F> A for F where F: FnOnce() -> R { type B = R; }",
        "impl<T, I: Iterator<Item = T>> A for I { type B = T; }",
        "fn a<I: Iterator>(x: I::Item) {}",
        "fn a<I: Iterator>(x: <I as Iterator>::Item) {}",
        "trait A: Iterator { fn b(x: Self::Item); }",
        "fn a<F: FnOnce() -> u8>(x: F::Output) {}",
        "impl<T: 'static> A for Box<T> { type B = (); }",
    ] {
        assert!(found(text) >= 1, "{text}: {:?}", all(text));
    }
}

#[test]
fn associated_types_that_are_asked_of_more_than_a_name() {
    for text in [
        "fn a<'b>(x: <&'static &'b () as Has>::A, y: &'b u8) {}",
        "fn a<T>(x: <&'static T as Has>::A, y: T) {}",
        "fn a<'b>(x: <M as Of<&'static &'b ()>>::A) {}",
        "fn a<T>(x: <M as Of<P<T>>>::A) {}",
        "type A<'b> = <W<'b> as Has>::A;",
        "struct A<T>(<[T] as Has>::A);",
        "fn a<T>(x: <<&'static T as Has>::A as Has>::A) {}",
        "fn a<T: Of<&'static &'static u8>>(x: T::A) {}",
        "fn a<'b, T>(x: T::A) where T: Of<Option<&'b u8>> {}",
        "trait A<T>: Of<&'static T> {}",
        "type P<T> = &'static T; fn a<W, T: Of<P<W>>>(x: T::A) {}",
        "trait A<T: 'static> { type B; }",
    ] {
        assert!(found(text) >= 1, "{text}");
    }
    for text in [
        "fn a<T: Tree>(x: <T as Tree>::Name, y: <<T as Tree>::Other as Tree>::Name) {}",
        "fn a<T: Of<u8> + From<Vec<u8>>>(x: T::A) {}",
        "fn a<T: Into<String>, I: Iterator<Item = &'static u8>>(x: T, y: impl Fn(&u8) -> &u8) {}",
        "trait A<T> { type B; fn c(x: &T) -> Self::B; }",
    ] {
        assert_eq!(found(text), 0, "{text}: {:?}", all(text));
    }
}

#[test]
fn associated_types_that_are_those_of_others() {
    for text in [
        "impl<T: Has> A for W<T> { type B = T::A; }",
        "impl<T: Has> A for W<T> { type B = Option<<T as Has>::A>; }",
        "impl<I: Iterator> A for W<I> { type B = Self::Item; }",
        "impl<I: Iterator> Iterator for W<I> { type B = Self::A; }",
        "impl<T> A for T { type B = T; }",
        "impl<'a, T> A for &'a mut T { type B = (); }",
        "impl A for <M as Has>::A {}",
        "impl B<<M as Has>::A> for u8 {}",
        "impl<T: Has> B<T::A> for W<T> {}",
        "impl<I: Iterator> Show for W<I> { fn a(x: Self::Item) {} }",
        "fn a<i: Iterator>(x: i::Item) {}",
        "fn a<r#i: Iterator>(x: i::Item) {}",
        "impl A for M { type B = dyn Sub; }",
        "type A = (dyn Sub);",
    ] {
        assert!(found(text) >= 1, "{text}");
    }
    for text in [
        "impl<T: Has> Iterator for W<T> { type Item = T::A; fn next(&mut self) -> Option<Self::Item> { None } }",
        "impl<T> Index<usize> for W<T> { type Output = T; fn index(&self, at: usize) -> &Self::Output { &self.0[at] } }",
        "impl<T: Clone> A for T { fn b(&self) {} }",
        "impl<T> A for Vec<T> { type B = T; }",
        "type A = Box<dyn Sub>;",
    ] {
        assert_eq!(found(text), 0, "{text}: {:?}", all(text));
    }
}

#[test]
fn ways_around_what_a_type_says() {
    for text in [
        "use alloc::vec::Splice as S;",
        "pub use core::iter::{Map, Peekable as P};",
        "#![type_length_limit = \"1\"]",
        "use core::any as b;",
        "use core::any::{Any as B};",
        "use core::*; fn a(b: &dyn any::Any) {}",
        "fn a<I: Iterator<Item: Display>>(i: I) {}",
    ] {
        assert_eq!(found(text), 1, "{text}: {:?}", all(text));
    }
    assert_eq!(
        found("fn a(b: &[u8]) -> bool { b.iter().any(|c| *c == 1) }"),
        0
    );
}

#[test]
fn what_cannot_be_read_is_an_error() {
    assert!(find("fn a( {").is_err());
    assert_eq!(found("fn a() { b!(=> ;) }"), 1);
    for text in [
        "fn a() { async { 1 }; }",
        "async fn a() {}",
        "fn a() { async || 1; }",
    ] {
        assert_eq!(found(text), 1, "{text}");
    }
}
