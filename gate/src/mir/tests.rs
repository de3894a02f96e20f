//! What is read out of the compiler's text: types as it prints them, and such as it might.

use super::pointers::is_bound;
use super::*;

fn parameters() -> BTreeSet<String> {
    ["T", "E"].map(String::from).into()
}

#[test]
fn pointers_that_take_nothing_for_granted() {
    for text in [
        "fn() -> bool",
        "for<Region(BrAnon)> fn(&'^0 u8) -> &'^0 core::sync::atomic::Atomic<u64>",
        "for<Region(BrAnon), Region(BrAnon)> fn(&'^0 a::Handle<(dyn a::B + '{erased})>, &'^1 c::D) -> u8",
        "for<Region(BrAnon), Region(BrAnon)> fn(&'^0 W<'^1>, &'^0 u8) -> &'^0 u8",
        "for<Region(BrAnon), Region(BrAnon)> fn(&'^0 a::Env, &'^1 mut (dyn for<Region(BrAnon)> core::ops::FnMut<(&'^0 [u8],), Output = ()> + '^1))",
        "for<Region(BrAnon)> fn(&'^0.Named(DefId(0:3 ~ a[1]::b::'_)) str, fn(&'^1_0 u8)) -> &'^0 u8",
        "fn(T) -> E",
        "for<Region(BrAnon)> fn(&'^0 str) -> core::option::Option<&'^0 str>",
        "for<Region(BrAnon)> fn(W<'^0>)",
        "for<Region(BrAnon)> unsafe extern \"C\" fn(&'^0 T)",
    ] {
        assert!(is_bound(text, &parameters()), "{text}");
    }
}

#[test]
fn pointers_whose_functions_may_take_something_for_granted() {
    for text in [
        "for<Region(BrAnon)> fn(&'{erased} &'{erased} (), &'^0 str) -> &'{erased} str",
        "for<Region(BrAnon)> fn(&'^0 str) -> &'static str",
        "for<Region(BrAnon)> fn(W<'{erased}>, &'^0 str)",
        "for<Region(BrAnon), Region(BrAnon)> fn(&'^0 &'^1 (), &'^1 str) -> &'^0 str",
        "for<Region(BrAnon), Region(BrAnon)> fn(&'^1 str) -> (&'^0 &'^1 (), &'^0 str)",
        "for<Region(BrAnon)> fn(&'^0 [T; 0], T) -> alloc::boxed::Box<(dyn a::B + '^0)>",
        "for<Region(BrAnon)> fn(&'^0 (dyn a::B + '{erased}), &'^0 u8) -> (dyn a::B + '{erased})",
        "fn(<T as a::Has>::A)",
        "for<Region(BrAnon)> fn(p::Lasting<&'^0 ()>, &'^0 str)",
        "fn(p::Lasting<T>, T)",
        "fn(...)",
        "fn({f::{closure#0} closure_kind_ty=i8})",
        "fn(&'a str)",
        "fn())",
    ] {
        assert!(!is_bound(text, &parameters()), "{text}");
    }
}

#[test]
fn what_becomes_a_pointer_is_read_from_its_first_sign() {
    let cast = "        _2 = ConstValue(ZeroSized: fn(u8) {<T as A>::f}) as fn(u8) (PointerCoercion(ReifyFnPointer(Safe), Implicit));";
    let operand = "        _2 = ConstValue(ZeroSized: fn(u8) {<T as A>::f})";
    assert_eq!(coerced(cast).collect::<Vec<_>>(), [(operand, "fn(u8)")]);
    let two =
        "_1 = _2 as for<X> fn(Y<W as fn()>) (PointerCoercion(ClosureFnPointer(Safe), AsCast));";
    assert_eq!(
        coerced(two).collect::<Vec<_>>(),
        [("_1 = _2", "for<X> fn(Y<W as fn()>)")]
    );
    let none = "_1 = _2 as &'{erased} [u8] (PointerCoercion(Unsize, Implicit));";
    assert_eq!(coerced(none).count(), 0);
    let odd = "_1 = _2 as Odd (PointerCoercion(ReifyFnPointer(Safe), Implicit));";
    assert_eq!(find(odd, &parameters()).len(), 1);
}

#[test]
fn what_a_function_takes_for_granted_is_seen_wherever_it_stands() {
    let named = |name: &str| format!("'^0.Named(DefId(0:7 ~ a[1]::f::'{name}))");
    let harmless = format!("for<Region(X)> fn(&{0} u8) -> &{0} u8 {{f}}", named("b"));
    let greedy = format!(
        "for<Region(X)> fn(p::Lasting<&{0} ()>, &{0} str) {{f}}",
        named("b")
    );
    let asking = String::from("fn(<T as a::Has>::A, u8) {f}");
    for (ty, count) in [(harmless, 0), (greedy, 1), (asking, 1)] {
        for text in [
            format!(
                "  _1 = ConstValue(ZeroSized: {ty}) as fn() (PointerCoercion(ReifyFnPointer(Safe), Implicit));"
            ),
            format!(
                "    let mut _2: {ty};\n  _1 = move _2 as fn() (PointerCoercion(ReifyFnPointer(Safe), Implicit));"
            ),
            format!(
                "  _1 = copy (_2.0: {ty}) as fn() (PointerCoercion(ReifyFnPointer(Safe), AsCast));"
            ),
        ] {
            assert_eq!(find(&text, &parameters()).len(), count, "{text}");
        }
    }
    let unknown = "fn f() {\n  let _2: fn() {g};\n}\nfn h() {\n  _1 = move _2 as fn() (PointerCoercion(ReifyFnPointer(Safe), Implicit));";
    assert_eq!(find(unknown, &parameters()).len(), 1);
}

/// An iterator made of a closure that gives `result`.
fn made(result: &str) -> String {
    format!(
        "core::iter::FromFn<{{<A<'{{erased}}> as B>::f::{{closure#0}} closure_kind_ty=i16 \
         closure_sig_as_fn_ptr_ty=extern \"rust-call\" fn((&'{{erased}} u8,)){result} \
         upvar_tys=(&'{{erased}} T,)}}>"
    )
}

#[test]
fn holders_of_what_their_type_names() {
    let map = "core::iter::Map<core::slice::Iter<'{erased}, u8>, for<X> fn(&'^0 u8) -> u8 {f::g}>";
    for text in [
        "core::slice::Iter<'{erased}, core::option::Option<T>>",
        "core::option::IntoIter<&'{erased} mut [E; ValTree(Leaf(0x4): usize)]>",
        map,
        &made("").replace('T', "u8"),
        &made(" -> core::option::Option<u64>").replace('T', "u8"),
    ] {
        let line = format!("let mut _1: core::iter::Peekable<{text}>;");
        assert_eq!(find(&line, &parameters()), Vec::<String>::new());
    }
}

#[test]
fn holders_of_what_may_borrow_more() {
    for text in [
        "T",
        "core::iter::Rev<T>",
        "m::Iter<T>",
        "impl core::iter::Iterator<Item = u8>",
        "<T as core::iter::IntoIterator>::IntoIter",
        &made(" -> core::option::Option<&'{erased} u8>").replace('T', "u8"),
        &made(" -> core::option::Option<T>"),
        "core::iter::FromFn<{f::{closure#0}}>",
        "core::iter::Map<u8, fn() -> u8 {g::<{f::{closure#0} closure_kind_ty=i8}>}>",
    ] {
        for name in HOLDERS {
            let line = format!("let _1: &'{{erased}} mut core::iter::{name}<{text}>;");
            let found = find(&line, &parameters());
            assert_eq!(found.len(), 1, "{line}");
            assert!(found[0].contains("rule `holder`"));
        }
    }
    assert!(find("let _1: MyPeekable<T>;", &parameters()).is_empty());
}
