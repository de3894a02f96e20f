//! One negative test and more for every rule: the error names the rule, the place, what is wrong and what
//! to write instead.

use idlc::{Report, Rule, Source};
use std::collections::BTreeSet;

/// A file that breaks one rule.
struct Case {
    name: &'static str,
    rule: Rule,
    text: &'static str,
    /// `line:column` of the error.
    place: &'static str,
    message: &'static str,
    help: &'static str,
}

fn compile(text: &str) -> Result<idlc::Model, Report> {
    idlc::compile(vec![Source {
        name: "test.idl".to_string(),
        text: text.to_string(),
    }])
}

/// The file breaks its rule and no other, and the error says all that it should.
fn check(case: &Case) {
    let Err(report) = compile(case.text) else {
        panic!("{}: it was accepted", case.name)
    };
    let text = report.to_string();
    let rules: BTreeSet<_> = report.errors.iter().map(|error| error.rule).collect();
    assert_eq!(rules, BTreeSet::from([case.rule]), "{}:\n{text}", case.name);
    let start = format!("test.idl:{}: error[{}]: ", case.place, case.rule.name());
    for part in [start.as_str(), case.message, case.help] {
        assert!(
            text.contains(part),
            "{}: `{part}` is missing in:\n{text}",
            case.name
        );
    }
}

macro_rules! cases {
    ($($name:ident $rule:ident $place:literal $message:literal $help:literal $text:literal;)*) => {
        const CASES: &[Case] = &[$(Case {
            name: stringify!($name),
            rule: Rule::$rule,
            text: $text,
            place: $place,
            message: $message,
            help: $help,
        }),*];

        $(#[test]
        fn $name() {
            let case = CASES.iter().find(|case| case.name == stringify!($name));
            check(case.expect("made by this macro"));
        })*
    };
}

#[test]
fn every_rule_has_a_case() {
    let tested: BTreeSet<_> = CASES.iter().map(|case| case.rule).collect();
    let missing: Vec<_> = Rule::ALL
        .iter()
        .filter(|rule| !tested.contains(rule))
        .map(|rule| rule.name())
        .collect();
    assert!(missing.is_empty(), "no case for {missing:?}");
}

#[test]
fn rules_have_distinct_names() {
    let names: BTreeSet<_> = Rule::ALL.iter().map(|rule| rule.name()).collect();
    assert_eq!(names.len(), Rule::ALL.len());
}

#[test]
fn a_type_is_named_with_the_path_that_reaches_it() {
    let text = "//! D.\n/// D.\npub trait Thing {\n    /// D.\n    fn f(&self, x: Outer) -> RpcResult<()>;\n}\n\
                /// D.\npub struct Outer {\n    /// D.\n    pub inner: RRef<Inner>,\n}\n\
                /// D.\npub enum Inner {\n    /// D.\n    Full(Vec<u8>),\n}\n";
    let report = compile(text).expect_err("it has a Vec").to_string();
    let path = "reached by: interface `Thing`, method `f`, argument `x`, struct `Outer`, field `inner`, \
                `RRef<Inner>`, enum `Inner`, variant `Full`, field `0`";
    assert!(report.contains(path), "{report}");
}

#[test]
fn a_type_that_nothing_reaches_is_checked_too() {
    let text = "//! D.\n/// D.\npub struct Alone {\n    /// D.\n    pub x: Vec<u8>,\n}\n";
    let report = compile(text).expect_err("it has a Vec").to_string();
    assert!(
        report.contains("reached by: struct `Alone`, field `x`"),
        "{report}"
    );
}

#[test]
fn files_are_one_namespace() {
    let file = |name: &str, text: &str| Source {
        name: name.to_string(),
        text: text.to_string(),
    };
    let point = "//! D.\n/// D.\npub struct Point {\n    /// D.\n    pub x: u8,\n}\n";
    let user = "//! D.\n/// D.\npub trait Plane {\n    /// D.\n    fn origin(&self) -> RpcResult<Point>;\n}\n";
    assert!(idlc::compile(vec![file("b.idl", user), file("a.idl", point)]).is_ok());
    let twice =
        idlc::compile(vec![file("a.idl", point), file("b.idl", point)]).expect_err("defined twice");
    assert!(twice.to_string().contains(
        "b.idl:3:12: error[duplicate]: `Point` is defined twice; the first is at a.idl:3"
    ));
}

#[test]
fn no_cut_and_no_lost_word_makes_idlc_panic() {
    let sample = include_str!("golden/sample.idl");
    for (at, letter) in sample.char_indices().filter(|(at, _)| at % 7 == 0) {
        let _ = compile(&sample[..at]);
        let _ = compile(&format!(
            "{}{}",
            &sample[..at],
            &sample[at + letter.len_utf8()..]
        ));
    }
}

cases! {
    a_file_is_rust Syntax "3:12" "a bracket or a quotation mark has no counterpart" "" r#"//! D.

pub struct {
"#;

    a_file_is_rust_in_its_grammar Syntax "3:12" "expected identifier" "" r#"//! D.

pub struct {}
"#;

    no_functions Item "4:5" "a function" "a trait, a struct or an enum" r#"//! D.

/// D.
pub fn f() {}
"#;

    no_imports Item "3:1" "an import" "one namespace" r#"//! D.

use core::fmt;
"#;

    no_aliases Item "3:1" "a type alias" "a trait, a struct or an enum" r#"//! D.

type A = u8;
"#;

    no_tuple_structs Body "4:12" "struct `Pair` has no named fields" "named fields" r#"//! D.

/// D.
pub struct Pair(pub u8, pub u8);
"#;

    no_empty_enums Body "4:10" "enum `Never` is empty" "variant" r#"//! D.

/// D.
pub enum Never {}
"#;

    no_empty_structs Body "4:12" "struct `Nothing` is empty" "`()`" r#"//! D.

/// D.
pub struct Nothing {}
"#;

    no_numbers_of_variants Body "6:5" "`Level::High` has a number" "leave the number out" r#"//! D.

/// D.
pub enum Level {
    /// D.
    High = 3,
}
"#;

    items_are_public NotPublic "4:8" "type `Point` is not public" "`pub`" r#"//! D.

/// D.
struct Point {
    /// D.
    pub x: u8,
}
"#;

    fields_are_public NotPublic "6:5" "field `Point.x` is not public" "`pub`" r#"//! D.

/// D.
pub struct Point {
    /// D.
    x: u8,
}
"#;

    types_are_documented Undocumented "3:12" "type `Point` has no documentation" "`///`" r#"//! D.

pub struct Point {
    /// D.
    pub x: u8,
}
"#;

    fields_are_documented Undocumented "5:9" "field `Point.x` has no documentation" "`///`" r#"//! D.

/// D.
pub struct Point {
    pub x: u8,
}
"#;

    variants_are_documented Undocumented "5:5" "variant `Level::High` has no" "`///`" r#"//! D.

/// D.
pub enum Level {
    High,
}
"#;

    methods_are_documented Undocumented "5:8" "method `Thing::f` has no" "`///`" r#"//! D.

/// D.
pub trait Thing {
    fn f(&self) -> RpcResult<()>;
}
"#;

    no_unknown_attributes Attribute "4:1" "`#[derive(Debug)]` is unknown" "derives are automatic" r#"//! D.

/// D.
#[derive(Debug)]
pub struct Point {
    /// D.
    pub x: u8,
}
"#;

    no_misplaced_attributes Attribute "6:5" "`#[plain]` is unknown, or has no meaning here" "at a struct or enum" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    #[plain] fn f(&self) -> RpcResult<()>;
}
"#;

    offers_only_at_domains Attribute "5:11" "no `#[domain]`" "leave it out" r#"//! D.

/// D.
#[offers(a)]
pub trait Thing {
    /// D.
    fn f(&self) -> RpcResult<()>;
}
"#;

    no_name_twice Duplicate "9:10" "`Point` is defined twice; the first is at test.idl:4" "another name" r#"//! D.

/// D.
pub struct Point {
    /// D.
    pub x: u8,
}
/// D.
pub enum Point {
    /// D.
    X,
}
"#;

    no_method_twice Duplicate "8:8" "interface `Thing`: method `f` is defined twice" "another name" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self) -> RpcResult<()>;
    /// D.
    fn f(&self) -> RpcResult<u8>;
}
"#;

    no_built_in_names Reserved "4:12" "`Handle` is the name of something built in" "another name" r#"//! D.

/// D.
pub struct Handle {
    /// D.
    pub x: u8,
}
"#;

    no_methods_of_handles Reserved "6:8" "every handle has a method `duplicate`" "`duplicate_thing`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn duplicate(&self) -> RpcResult<()>;
}
"#;

    types_in_camel_case NameStyle "4:12" "`point_2d` is not CamelCase" "style" r#"//! D.

/// D.
pub struct point_2d {
    /// D.
    pub x: u8,
}
"#;

    methods_in_snake_case NameStyle "6:8" "`doIt` is not snake_case" "style" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn doIt(&self) -> RpcResult<()>;
}
"#;

    parameters_are_names NameStyle "6:17" "`(a, b)` is not the name of a parameter" "simple name" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, (a, b): (u8, u8)) -> RpcResult<()>;
}
"#;

    no_generic_items Generics "4:18" "`Point` has a generic parameter" "write the type out" r#"//! D.

/// D.
pub struct Point<T> {
    /// D.
    pub x: u8,
}
"#;

    no_generic_methods Generics "6:10" "`f` has a generic parameter" "write the type out" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f<T: Copy>(&self) -> RpcResult<()>;
}
"#;

    no_generic_types Generics "6:20" "`Wrapper<u8>` is generic" "written out" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: Wrapper<u8>) -> RpcResult<()>;
}
"#;

    no_lifetime_parameters Lifetime "6:10" "`f` has a lifetime parameter" "lend it for one call" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f<'a>(&self) -> RpcResult<()>;
}
"#;

    no_lifetimes_of_borrows Lifetime "6:20" "has a lifetime" "leave `'a` out" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: &'a RRef<u8>) -> RpcResult<()>;
}
"#;

    no_default_bodies DefaultBody "6:34" "method `Thing::f` has a default body" "library crate" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self) -> RpcResult<()> { Ok(()) }
}
"#;

    no_constants Const "4:5" "a constant" "a trait, a struct or an enum" r#"//! D.

/// D.
pub const LIMIT: u8 = 3;
"#;

    no_associated_constants Const "5:5" "a constant" "a method that gives the value" r#"//! D.

/// D.
pub trait Thing {
    const LIMIT: u8;
}
"#;

    no_associated_types Const "5:5" "an associated type" "a method" r#"//! D.

/// D.
pub trait Thing {
    type Item;
}
"#;

    no_async_methods Qualifier "6:14" "method `Thing::f` has a qualifier" "`#[unbounded]`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    async fn f(&self) -> RpcResult<()>;
}
"#;

    no_unsafe_methods Qualifier "6:15" "method `Thing::f` has a qualifier" "" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    unsafe fn f(&self) -> RpcResult<()>;
}
"#;

    no_supertraits Qualifier "4:11" "a qualifier or a supertrait" "pub trait Name" r#"//! D.

/// D.
pub trait Thing: Send {
    /// D.
    fn f(&self) -> RpcResult<()>;
}
"#;

    no_where_clauses Qualifier "6:34" "`f` has a where clause" "leave it out" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self) -> RpcResult<()> where u8: Copy;
}
"#;

    methods_take_self Receiver "6:8" "does not take `&self`" "behind a lock" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(x: u8) -> RpcResult<()>;
}
"#;

    methods_do_not_change_self Receiver "6:8" "does not take `&self`" "behind a lock" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&mut self) -> RpcResult<()>;
}
"#;

    methods_do_not_take_self_away Receiver "6:8" "does not take `&self`" "`&self`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(self) -> RpcResult<()>;
}
"#;

    every_method_can_fail Result "6:20" "`f` gives `u8`, but every call can fail" "`RpcResult<u8>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self) -> u8;
}
"#;

    a_method_without_result Result "6:8" "`f` gives `()`" "`RpcResult<()>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self);
}
"#;

    errors_are_enums_with_rpc ErrorType "6:31" "`Failure` cannot say that the call itself failed" "`Rpc(RpcError)`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self) -> Result<u8, Failure>;
}
/// D.
pub enum Failure {
    /// D.
    Broken,
}
"#;

    errors_are_not_numbers ErrorType "6:31" "`u32` cannot say" "`Rpc(RpcError)`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self) -> Result<(), u32>;
}
"#;

    no_unknown_types UnknownType "6:20" "`Blurb` is defined nowhere" "some .idl file defines" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: Blurb) -> RpcResult<()>;
}
"#;

    a_misspelt_type UnknownType "6:20" "`RpcEror` is defined nowhere" "`RpcError`, if that was meant" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: RpcEror) -> RpcResult<()>;
}
"#;

    no_paths UnknownType "6:20" "is not a type of the interface language" "name alone" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: core::time::Duration) -> RpcResult<()>;
}
"#;

    no_wrong_parameters UnknownType "6:20" "does not have the right parameters" "`RVec<T>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: RVec) -> RpcResult<()>;
}
"#;

    no_boxes PrivateHeap "6:20" "`Box<u64>` lives on the private heap" "`RRef<u64>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: Box<u64>) -> RpcResult<()>;
}
"#;

    no_boxed_interfaces PrivateHeap "6:20" "lives on the private heap" "`Handle<dyn Thing>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: Box<dyn Thing>) -> RpcResult<()>;
}
"#;

    no_vecs PrivateHeap "6:30" "`Vec<u8>` lives on the private heap" "`RVec<u8>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self) -> RpcResult<Vec<u8>>;
}
"#;

    no_vecs_by_path PrivateHeap "6:30" "lives on the private heap" "`RVec<u8>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self) -> RpcResult<alloc::vec::Vec<u8>>;
}
"#;

    no_strings PrivateHeap "6:23" "`String` lives on the private heap" "`Text<32>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, name: String) -> RpcResult<()>;
}
"#;

    no_arcs PrivateHeap "6:20" "lives on the private heap" "duplicated" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: Arc<u8>) -> RpcResult<()>;
}
"#;

    no_cells PrivateHeap "6:25" "changes behind a shared reference" "moved in and given back" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: RRef<Cell<u8>>) -> RpcResult<()>;
}
"#;

    no_atomics PrivateHeap "6:20" "changes behind a shared reference" "moved in" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: AtomicU32) -> RpcResult<()>;
}
"#;

    no_mutable_borrows MutableBorrow "6:20" "`&mut RRef<u8>` lends something to be changed" "`RRef<u8>` in and give it back" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: &mut RRef<u8>) -> RpcResult<()>;
}
"#;

    no_mutable_slices MutableBorrow "6:20" "lends something to be changed" "`RVec<u8>` in" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: &mut [u8]) -> RpcResult<()>;
}
"#;

    no_static_borrows StaticBorrow "6:30" "points into the image of one domain" "`RRef<T>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self) -> RpcResult<&'static u8>;
}
"#;

    no_borrowed_strings Borrow "6:20" "`&str` may point" "`&RVec<u8>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: &str) -> RpcResult<()>;
}
"#;

    no_slices Borrow "6:20" "`&[u16]` may point" "`&RVec<u16>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: &[u16]) -> RpcResult<()>;
}
"#;

    no_borrows_of_values Borrow "6:20" "`&u64` may point" "`u64` by value" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: &u64) -> RpcResult<()>;
}
"#;

    no_borrows_of_handles Borrow "6:20" "may point" "`handle.duplicate()?`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: &Handle<dyn Thing>) -> RpcResult<()>;
}
"#;

    no_borrows_in_results Borrow "6:30" "`&RVec<u8>` may point" "moved" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self) -> RpcResult<&RVec<u8>>;
}
"#;

    no_borrows_inside Borrow "6:27" "`&RVec<u8>` may point" "moved" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: Option<&RVec<u8>>) -> RpcResult<()>;
}
"#;

    no_raw_pointers RawPointer "6:20" "`*const u8` is a raw pointer" "`RRef<T>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: *const u8) -> RpcResult<()>;
}
"#;

    no_function_pointers FunctionPointer "6:20" "`fn(u8)` is code of one domain" "`Handle<dyn I>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: fn(u8)) -> RpcResult<()>;
}
"#;

    no_closures FunctionPointer "6:20" "`impl Fn(u8)` is code of one domain" "`Handle<dyn I>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: impl Fn(u8)) -> RpcResult<()>;
}
"#;

    no_boxed_closures FunctionPointer "6:20" "is code of one domain" "`Handle<dyn I>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: Box<dyn FnOnce()>) -> RpcResult<()>;
}
"#;

    no_any DynAny "6:20" "can be anything" "`AnyHandle`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: Box<dyn Any>) -> RpcResult<()>;
}
"#;

    no_handle_of_any DynAny "6:20" "can be anything" "`AnyHandle`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: Handle<dyn Any>) -> RpcResult<()>;
}
"#;

    no_bare_trait_objects TraitObject "6:25" "is a trait object without a handle" "`Handle<dyn Thing>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: RRef<dyn Thing>) -> RpcResult<()>;
}
"#;

    no_interface_as_type TraitObject "6:20" "`Thing` is an interface, not a type" "`Handle<dyn Thing>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: Thing) -> RpcResult<()>;
}
"#;

    no_handle_without_dyn TraitObject "6:20" "does not name an interface" "`Handle<dyn Thing>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: Handle<Thing>) -> RpcResult<()>;
}
"#;

    no_handle_of_nothing TraitObject "6:20" "`Thnig` is not an interface" "`Handle<dyn Thing>`, if" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: Handle<dyn Thnig>) -> RpcResult<()>;
}
"#;

    no_long_tuples TupleSize "6:20" "a tuple of 5 elements" "a struct" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: (u8, u8, u8, u8, u8)) -> RpcResult<()>;
}
"#;

    lengths_are_numbers Length "6:20" "is not a number" "`[u8; 6]`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: [u8; N]) -> RpcResult<()>;
}
"#;

    texts_are_short Length "6:20" "1 to 65,535" "`Text<32>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: Text<70000>) -> RpcResult<()>;
}
"#;

    no_handles_in_rrefs HandleInShared "6:32" "lies in an object on the shared heap" "beside" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: RRef<Option<Handle<dyn Thing>>>) -> RpcResult<()>;
}
"#;

    no_any_handles_in_rrefs HandleInShared "11:15" "`AnyHandle` lies in an object" "beside" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: RRef<Box2>) -> RpcResult<()>;
}
/// D.
pub struct Box2 {
    /// D.
    pub link: AnyHandle,
}
"#;

    no_floats_by_value FloatByValue "6:20" "`f64` is passed by value" "`u64` with `to_bits`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: f64) -> RpcResult<()>;
}
"#;

    no_floats_in_structs FloatByValue "12:12" "`f32` is passed by value" "`RRef<f32>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self) -> RpcResult<Level>;
}
/// D.
#[plain]
pub struct Level {
    /// D.
    pub x: f32,
}
"#;

    elements_are_plain VecElement "6:20" "`RVec<u8>` owns an object" "plain data" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: RVec<RVec<u8>>) -> RpcResult<()>;
}
"#;

    elements_are_marked_plain VecElement "6:20" "`Level` is not marked #[plain]" "plain data" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: RVec<Level>) -> RpcResult<()>;
}
/// D.
pub struct Level {
    /// D.
    pub x: u8,
}
"#;

    fields_of_plain_types_are_plain PlainField "7:12" "`Level` is marked #[plain], but `RVec<u8>` owns" "leave the mark out" r#"//! D.

/// D.
#[plain]
pub struct Level {
    /// D.
    pub x: RVec<u8>,
}
"#;

    variants_of_plain_types_are_plain PlainField "7:10" "`AnyHandle` is a handle" "leave the mark out" r#"//! D.

/// D.
#[plain]
pub enum Level {
    /// D.
    High(AnyHandle),
}
"#;

    no_recursion Recursive "6:22" "`Tree` contains itself" "by index" r#"//! D.

/// D.
pub struct Tree {
    /// D.
    pub rest: Option<Tree>,
}
"#;

    no_recursion_behind_rref Recursive "16:10" "`List` contains itself" "by index" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: List) -> RpcResult<()>;
}
/// D.
pub struct List {
    /// D.
    pub rest: Option<RRef<More>>,
}
/// D.
pub enum More {
    /// D.
    Rest(List),
}
"#;

    no_large_values TooLarge "6:20" "takes up to 5000 bytes" "`RRef<T>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self, x: [u8; 5000]) -> RpcResult<()>;
}
"#;

    no_large_results TooLarge "6:20" "bytes of the stack" "`RRef<T>`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    fn f(&self) -> RpcResult<[Text<1000>; 5]>;
}
"#;

    budgets_are_milliseconds Budget "6:13" "`0` is not a budget" "`#[unbounded]`" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    #[budget(0)]
    fn f(&self) -> RpcResult<()>;
}
"#;

    no_budget_without_bound Budget "5:5" "is unbounded and has a budget" "one of the two" r#"//! D.

/// D.
pub trait Thing {
    /// D.
    #[budget(5)]
    #[unbounded]
    fn f(&self) -> RpcResult<()>;
}
"#;

    entries_have_start Entry "6:8" "the function of entry `Disk` is not `start`" "without `self`" r#"//! D.

/// D.
#[domain]
pub trait Disk {
    fn begin() -> RpcResult<()>;
}
/// D.
pub trait Part {
    /// D.
    fn f(&self) -> RpcResult<()>;
}
"#;

    entries_have_one_function Entry "5:11" "does not have exactly one function" "nothing else" r#"//! D.

/// D.
#[domain]
pub trait Disk {
    fn start() -> RpcResult<()>;
    fn stop() -> RpcResult<()>;
}
/// D.
pub trait Part {
    /// D.
    fn f(&self) -> RpcResult<()>;
}
"#;

    entries_take_handles Entry "6:23" "`sectors: u64` is nothing that a domain can be granted" "`Option<Handle<dyn I>>`" r#"//! D.

/// D.
#[domain]
pub trait Disk {
    fn start(sectors: u64) -> RpcResult<()>;
}
/// D.
pub trait Part {
    /// D.
    fn f(&self) -> RpcResult<()>;
}
"#;

    options_come_last Entry "6:23" "is nothing that a domain can be granted" "at last" r#"//! D.

/// D.
#[domain]
pub trait Disk {
    fn start(options: RVec<u8>, other: Handle<dyn Part>) -> RpcResult<()>;
}
/// D.
pub trait Part {
    /// D.
    fn f(&self) -> RpcResult<()>;
}
"#;

    entries_offer_handles Entry "6:29" "`u64` is nothing that a domain can offer" "`Handle<dyn I>`" r#"//! D.

/// D.
#[domain]
pub trait Disk {
    fn start() -> RpcResult<u64>;
}
/// D.
pub trait Part {
    /// D.
    fn f(&self) -> RpcResult<()>;
}
"#;

    entries_can_fail Entry "6:19" "`start` gives `Handle<dyn Part>`" "`RpcResult<Handle<dyn I>>`" r#"//! D.

/// D.
#[domain]
pub trait Disk {
    fn start() -> Handle<dyn Part>;
}
/// D.
pub trait Part {
    /// D.
    fn f(&self) -> RpcResult<()>;
}
"#;

    offers_have_one_name_each Entry "5:11" "2 names for 1 offers" "one name" r#"//! D.

/// D.
#[domain]
pub trait Disk {
    #[offers(a, b)]
    fn start() -> RpcResult<Handle<dyn Part>>;
}
/// D.
pub trait Part {
    /// D.
    fn f(&self) -> RpcResult<()>;
}
"#;

    offers_have_different_names Entry "5:11" "two offers have the same name" "a name of its own" r#"//! D.

/// D.
#[domain]
pub trait Disk {
    #[offers(a, a)]
    fn start() -> RpcResult<(Handle<dyn Part>, Handle<dyn Part>)>;
}
/// D.
pub trait Part {
    /// D.
    fn f(&self) -> RpcResult<()>;
}
"#;

    entries_want_little Entry "5:11" "0 wants and 5 offers" "at most 12 wants" r#"//! D.

/// D.
#[domain]
pub trait Disk {
    fn start() -> RpcResult<[Handle<dyn Part>; 5]>;
}
/// D.
pub trait Part {
    /// D.
    fn f(&self) -> RpcResult<()>;
}
"#;
}
