//! Files by the grammar of interfaces, with now and then something that is not allowed.

use idlc::bounds;

use super::Numbers;

/// Types that stand for themselves.
pub(super) const SIMPLE: &[&str] = &[
    "u8",
    "u16",
    "u32",
    "u64",
    "u128",
    "usize",
    "i8",
    "i64",
    "i128",
    "bool",
    "char",
    "()",
    "RpcError",
    "Text<1>",
    "Text<32>",
    "Text<4000>",
];
/// Types that own something.
const OWNING: &[&str] = &[
    "AnyHandle",
    "RVec<u8>",
    "RRef<u64>",
    "RRef<f64>",
    "RVec<f32>",
];
/// Types that are not allowed, everywhere or in most places.
pub(super) const ODD: &[&str] = &[
    "f32",
    "Vec<u8>",
    "&str",
    "&'static u8",
    "Box<dyn Fn()>",
    "*mut u8",
    "fn()",
    "[u8; 0]",
    "Text<65535>",
    "Text<65536>",
    "[u8; 4294967296]",
    "UserBuf",
    "&UserBuf",
    "(u8, u8, u8, u8, u8)",
    "Self",
    "dyn Any",
    "RRef<AnyHandle>",
    "RVec<RVec<u8>>",
    "Option",
    "Unknown",
    "[(); 4294967295]",
    "impl Send",
    "Handle<dyn Unknown>",
    "u8!()",
    "_",
    "r#u8",
    "RRef<[u64; 131072]>",
];
/// Names of methods, fields and parameters that somebody could stumble over.
const NAMES: &[&str] = &[
    "a",
    "b",
    "read",
    "transfer",
    "pass",
    "self_",
    "target",
    "source",
    "record",
    "proxy",
    "result",
    "stub",
    "forward",
    "trampoline",
    "block",
    "place",
    "options",
    "clone",
    "drop",
    "eq",
    "type_id",
    "call",
    "inward",
    "outward",
    "words",
    "begun",
    "value",
    "value0",
    "field_0",
    "it",
    "moved",
    "gen",
    "match",
    "r#match",
    "error",
    "offers",
    "grants",
    "start",
    "start0",
    "x1_",
    "a_b",
];

/// A number of things that is likely to be at the edge of what is allowed.
pub(super) fn edge(numbers: &mut Numbers) -> usize {
    let most = *numbers.one_of(&[
        bounds::MOST_ARGUMENTS,
        bounds::MOST_NESTED,
        bounds::MOST_METHODS,
        bounds::MOST_INTERFACES,
        1500,
        5000,
    ]);
    match numbers.below(4) {
        0 => most - 1,
        1 => most + 1,
        _ => most,
    }
}

/// A file by the grammar.
pub(super) struct Grammar<'a> {
    numbers: &'a mut Numbers,
    text: String,
    /// Types that were defined, and whether they are plain.
    types: Vec<(String, bool)>,
    /// Enums that can be the error of a method.
    errors: Vec<String>,
    interfaces: usize,
}

impl Grammar<'_> {
    /// The text of one.
    pub(super) fn of(numbers: &mut Numbers) -> String {
        let interfaces = numbers.below(4);
        let mut grammar = Grammar {
            numbers,
            text: "//! A file.\n".to_string(),
            types: Vec::new(),
            errors: Vec::new(),
            interfaces,
        };
        for at in 0..grammar.numbers.below(7) {
            grammar.definition(at);
        }
        for at in 0..interfaces {
            grammar.interface(at);
        }
        if grammar.one_in(3) {
            grammar.entry();
        }
        grammar.text
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.numbers.below(count) == 0
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn docs(&mut self) {
        let doc = match self.numbers.below(200) {
            0 => "",
            1 => "/// `a` and *b*, <c> \u{e9}",
            2 => "/** a\nb */",
            3 => "#[doc = \"a \\\" b\"]",
            4 => "///     code",
            _ => "/// D.",
        };
        self.line(doc);
    }

    /// A name for the part with number `at`, now and then one that is met elsewhere, too.
    fn name(&mut self, at: usize) -> String {
        match self.numbers.below(24) {
            0 => (*self.numbers.one_of(NAMES)).to_string(),
            1 if self.one_in(8) => "n".repeat(31 + self.numbers.below(3)),
            _ => format!("n{at}"),
        }
    }

    /// How many parts something has.
    fn count(&mut self, most: usize) -> usize {
        if self.one_in(150) {
            return edge(self.numbers).min(600);
        }
        1 + self.numbers.below(most)
    }

    fn definition(&mut self, at: usize) {
        let is_plain = self.one_in(3);
        let is_error = !is_plain && self.one_in(3);
        self.docs();
        if is_plain {
            self.line("#[plain]");
        }
        let name = format!("Type{at}");
        if is_error || self.one_in(2) {
            self.variants(&name, is_plain, is_error);
        } else {
            self.line(&format!("pub struct {name} {{"));
            for field in 0..self.count(6) {
                self.docs();
                let (name, ty) = (self.name(field), self.ty(0, is_plain));
                self.line(&format!("    pub {name}: {ty},"));
            }
        }
        self.line("}");
        if is_error {
            self.errors.push(name.clone());
        }
        self.types.push((name, is_plain));
    }

    fn variants(&mut self, name: &str, is_plain: bool, is_error: bool) {
        self.line(&format!("pub enum {name} {{"));
        if is_error {
            self.line("/// The call failed.\n    Rpc(RpcError),");
            if self.one_in(2) {
                self.line("/// It is gone.\n    #[gone]\n    Lost,");
            }
        }
        let is_bare = self.one_in(2);
        for at in 0..self.count(6) {
            self.docs();
            let fields = if is_bare { 0 } else { self.numbers.below(4) };
            let types: Vec<_> = (0..fields).map(|_| self.ty(0, is_plain)).collect();
            match (fields, self.one_in(2)) {
                (0, _) => self.line(&format!("    Variant{at},")),
                (_, true) => self.line(&format!("    Variant{at}({}),", types.join(", "))),
                _ => {
                    let named = types.iter().enumerate();
                    let named: Vec<_> = named.map(|(at, it)| format!("f{at}: {it}")).collect();
                    self.line(&format!("    Variant{at} {{ {} }},", named.join(", ")));
                }
            }
        }
    }

    /// A type; plain data only, if `is_plain`.
    fn ty(&mut self, depth: usize, is_plain: bool) -> String {
        if self.one_in(160) {
            return (*self.numbers.one_of(ODD)).to_string();
        }
        let choice = self.numbers.below(if depth > 4 { 4 } else { 14 });
        match choice {
            0..=2 => (*self.numbers.one_of(SIMPLE)).to_string(),
            3 | 4 => self.defined(is_plain),
            5 => format!("Option<{}>", self.ty(depth + 1, is_plain)),
            6 => format!(
                "[{}; {}]",
                self.ty(depth + 1, is_plain),
                1 + self.numbers.below(9)
            ),
            7 => {
                let count = 1 + self.numbers.below(4);
                let types: Vec<_> = (0..count).map(|_| self.ty(depth + 1, is_plain)).collect();
                format!("({},)", types.join(", "))
            }
            _ if is_plain => (*self.numbers.one_of(SIMPLE)).to_string(),
            8 => (*self.numbers.one_of(OWNING)).to_string(),
            9 => format!("RVec<{}>", self.ty(depth + 1, true)),
            10 => self.handle(),
            11 => format!("Option<{}>", self.handle()),
            12 => format!("RRef<{}>", self.ty(depth + 1, true)),
            _ => format!(
                "Result<{}, {}>",
                self.ty(depth + 1, false),
                self.ty(depth + 1, false)
            ),
        }
    }

    fn defined(&mut self, is_plain: bool) -> String {
        let fitting = self.types.iter().filter(|it| it.1 || !is_plain);
        let fitting: Vec<_> = fitting.map(|it| it.0.clone()).collect();
        match fitting.is_empty() {
            true => "u32".to_string(),
            false => self.numbers.one_of(&fitting).clone(),
        }
    }

    fn handle(&mut self) -> String {
        match self.interfaces {
            0 => "AnyHandle".to_string(),
            count => format!("Handle<dyn Interface{}>", self.numbers.below(count)),
        }
    }

    fn interface(&mut self, at: usize) {
        self.docs();
        if self.one_in(4) {
            self.line("#[base]");
        }
        self.line(&format!("pub trait Interface{at} {{"));
        for method in 0..self.count(6) {
            self.docs();
            match self.numbers.below(12) {
                0 => self.line("    #[unbounded]"),
                1 => self.line("    #[frees]"),
                2 => {
                    let budget = *self
                        .numbers
                        .one_of(&[1, 5000, 3_600_000, 3_600_000, 3_600_001]);
                    self.line(&format!("    #[budget({budget})]"));
                }
                _ => {}
            }
            let count = if self.one_in(100) {
                16
            } else {
                self.numbers.below(5)
            };
            let parameters: Vec<_> = (0..count).map(|at| self.parameter(at)).collect();
            let (name, result) = (self.name(method), self.result());
            let parameters: String = parameters.concat();
            self.line(&format!("    fn {name}(&self{parameters}) -> {result};"));
        }
        self.line("}");
    }

    fn parameter(&mut self, at: usize) -> String {
        let name = self.name(at);
        let ty = match self.numbers.below(10) {
            0 => "&UserBuf".to_string(),
            1 => format!("&RRef<{}>", self.ty(1, true)),
            2 => format!("&RVec<{}>", self.ty(1, true)),
            _ => self.ty(0, false),
        };
        format!(", {name}: {ty}")
    }

    fn result(&mut self) -> String {
        let ok = self.ty(0, false);
        match self.errors.is_empty() || self.one_in(2) {
            true => format!("RpcResult<{ok}>"),
            false => format!("Result<{ok}, {}>", self.numbers.one_of(&self.errors)),
        }
    }

    fn entry(&mut self) {
        self.docs();
        self.line("#[domain]");
        let name = *self
            .numbers
            .one_of(&["Disk", "PCIBus", "Ext2", "A", "Block2Net"]);
        self.line(&format!("pub trait {name} {{"));
        let most = if self.one_in(20) { 18 } else { 4 };
        let wants: Vec<_> = (0..self.numbers.below(most))
            .map(|at| {
                let (name, handle) = (self.name(at), self.handle());
                let is_optional = self.one_in(3);
                let ty = if is_optional {
                    format!("Option<{handle}>")
                } else {
                    handle
                };
                format!("{name}: {ty}")
            })
            .chain(["options: RVec<u8>".to_string()])
            .collect();
        let count = wants.len() - self.numbers.below(2);
        let offers = match self.numbers.below(5) {
            0 => "()".to_string(),
            1 => self.handle(),
            2 => format!("Option<{}>", self.handle()),
            3 => format!("({}, {})", self.handle(), self.handle()),
            _ => format!("[{}; {}]", self.handle(), 1 + self.numbers.below(5)),
        };
        let wants = wants[..count].join(", ");
        self.line(&format!(
            "    fn start({wants}) -> RpcResult<{offers}>;\n}}"
        ));
    }
}
