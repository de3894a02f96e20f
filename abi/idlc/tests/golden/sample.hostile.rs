// Written by idlc from the .idl files. Do not edit.

impl crate::Hostile for SampleError {
    fn make(source: &mut dyn crate::Source) -> RpcResult<Self> {
        Ok(match crate::below(source, 4) {
            0 => Self::Rpc { 0: crate::Hostile::make(source)? },
            1 => Self::Part { index: crate::Hostile::make(source)?, why: crate::Hostile::make(source)? },
            2 => Self::Over { 0: crate::Hostile::make(source)?, 1: crate::Hostile::make(source)? },
            _ => Self::Lost {  },
        })
    }

    fn take(self, source: &mut dyn crate::Source) {
        match self {
            Self::Rpc { 0: field_0 } => {
                crate::Hostile::take(field_0, source);
            }
            Self::Part { index: field_index, why: field_why } => {
                crate::Hostile::take(field_index, source);
                crate::Hostile::take(field_why, source);
            }
            Self::Over { 0: field_0, 1: field_1 } => {
                crate::Hostile::take(field_0, source);
                crate::Hostile::take(field_1, source);
            }
            Self::Lost {  } => {
            }
        }
        let _ = source;
    }
}

impl crate::Hostile for Measure {
    fn make(source: &mut dyn crate::Source) -> RpcResult<Self> {
        Ok(Self { at: crate::Hostile::make(source)?, address: crate::Hostile::make(source)?, pair: crate::Hostile::make(source)?, state: crate::Hostile::make(source)? })
    }

    fn take(self, source: &mut dyn crate::Source) {
        let Self { at: field_at, address: field_address, pair: field_pair, state: field_state } = self;
        crate::Hostile::take(field_at, source);
        crate::Hostile::take(field_address, source);
        crate::Hostile::take(field_pair, source);
        crate::Hostile::take(field_state, source);
        let _ = source;
    }
}

impl crate::Hostile for State {
    fn make(source: &mut dyn crate::Source) -> RpcResult<Self> {
        Ok(match crate::below(source, 2) {
            0 => Self::Idle {  },
            _ => Self::Busy { 0: crate::Hostile::make(source)? },
        })
    }

    fn take(self, source: &mut dyn crate::Source) {
        match self {
            Self::Idle {  } => {
            }
            Self::Busy { 0: field_0 } => {
                crate::Hostile::take(field_0, source);
            }
        }
        let _ = source;
    }
}

impl crate::Hostile for Phase {
    fn make(source: &mut dyn crate::Source) -> RpcResult<Self> {
        Ok(match crate::below(source, 2) {
            0 => Self::Before {  },
            _ => Self::After {  },
        })
    }

    fn take(self, source: &mut dyn crate::Source) {
        match self {
            Self::Before {  } => {
            }
            Self::After {  } => {
            }
        }
        let _ = source;
    }
}

impl crate::Hostile for Sample {
    fn make(source: &mut dyn crate::Source) -> RpcResult<Self> {
        Ok(Self { left: crate::Hostile::make(source)?, right: crate::Hostile::make(source)? })
    }

    fn take(self, source: &mut dyn crate::Source) {
        let Self { left: field_left, right: field_right } = self;
        crate::Hostile::take(field_left, source);
        crate::Hostile::take(field_right, source);
        let _ = source;
    }
}

impl crate::Hostile for Parcel {
    fn make(source: &mut dyn crate::Source) -> RpcResult<Self> {
        Ok(Self { name: crate::Hostile::make(source)?, bytes: crate::Hostile::make(source)?, handles: crate::Hostile::make(source)?, content: crate::Hostile::make(source)? })
    }

    fn take(self, source: &mut dyn crate::Source) {
        let Self { name: field_name, bytes: field_bytes, handles: field_handles, content: field_content } = self;
        crate::Hostile::take(field_name, source);
        crate::Hostile::take(field_bytes, source);
        crate::Hostile::take(field_handles, source);
        crate::Hostile::take(field_content, source);
        let _ = source;
    }
}

impl crate::Hostile for Content {
    fn make(source: &mut dyn crate::Source) -> RpcResult<Self> {
        Ok(match crate::below(source, 4) {
            0 => Self::Empty {  },
            1 => Self::Plain { 0: crate::Hostile::make(source)? },
            2 => Self::Measured { 0: crate::Hostile::make(source)?, 1: crate::Hostile::make(source)? },
            _ => Self::Linked { name: crate::Hostile::make(source)?, link: crate::Hostile::make(source)? },
        })
    }

    fn take(self, source: &mut dyn crate::Source) {
        match self {
            Self::Empty {  } => {
            }
            Self::Plain { 0: field_0 } => {
                crate::Hostile::take(field_0, source);
            }
            Self::Measured { 0: field_0, 1: field_1 } => {
                crate::Hostile::take(field_0, source);
                crate::Hostile::take(field_1, source);
            }
            Self::Linked { name: field_name, link: field_link } => {
                crate::Hostile::take(field_name, source);
                crate::Hostile::take(field_link, source);
            }
        }
        let _ = source;
    }
}

impl Part for crate::Rogue {
    fn number(&self) -> RpcResult<u32> {
        self.answer()
    }
    fn join(&self, _: Handle<dyn Part>) -> RpcResult<u32> {
        self.answer()
    }
}

impl crate::Imitated for dyn Part {
    fn imitate(rogue: crate::Rogue) -> RpcResult<Handle<Self>> {
        Handle::new(rogue)
    }
}

fn call_0(target: AnyHandle, source: &mut dyn crate::Source) -> crate::Outcome {
    let Ok(target) = target.downcast::<dyn Part>() else { return crate::Outcome::OtherType };
    source.begins(&format_args!(""));
    let result = target.number();
    crate::ended(result, source)
}

fn call_1(target: AnyHandle, source: &mut dyn crate::Source) -> crate::Outcome {
    let Ok(target) = target.downcast::<dyn Part>() else { return crate::Outcome::OtherType };
    let Ok(value0) = <Handle<dyn Part> as crate::Hostile>::make(source) else { return crate::Outcome::Unmade };
    source.begins(&format_args!("other: {value0:?}"));
    let result = target.join(value0);
    crate::ended(result, source)
}

impl Whole for crate::Rogue {
    fn nothing(&self) -> RpcResult<()> {
        self.answer()
    }
    fn plain(&self, _: Measure, _: State, _: bool) -> Result<State, SampleError> {
        self.answer()
    }
    fn fill(&self, _: &UserBuf<'_>, _: u8) -> Result<u64, SampleError> {
        self.answer()
    }
    fn work(&self, _: &RRef<Sample>, _: &RVec<Measure>, _: RVec<u8>) -> Result<(RVec<u8>, u64), SampleError> {
        self.answer()
    }
    fn link(
        &self,
        _: Handle<dyn Part>,
        _: Option<Handle<dyn Part>>,
        _: Parcel,
        _: u128,
    ) -> Result<Handle<dyn Whole>, SampleError> {
        self.answer()
    }
}

impl crate::Imitated for dyn Whole {
    fn imitate(rogue: crate::Rogue) -> RpcResult<Handle<Self>> {
        Handle::new(rogue)
    }
}

fn call_2(target: AnyHandle, source: &mut dyn crate::Source) -> crate::Outcome {
    let Ok(target) = target.downcast::<dyn Whole>() else { return crate::Outcome::OtherType };
    source.begins(&format_args!(""));
    let result = target.nothing();
    crate::ended(result, source)
}

fn call_3(target: AnyHandle, source: &mut dyn crate::Source) -> crate::Outcome {
    let Ok(target) = target.downcast::<dyn Whole>() else { return crate::Outcome::OtherType };
    let Ok(value0) = <Measure as crate::Hostile>::make(source) else { return crate::Outcome::Unmade };
    let Ok(value1) = <State as crate::Hostile>::make(source) else { return crate::Outcome::Unmade };
    let Ok(value2) = <bool as crate::Hostile>::make(source) else { return crate::Outcome::Unmade };
    source.begins(&format_args!("measure: {value0:?}, state: {value1:?}, flag: {value2:?}"));
    let result = target.plain(value0, value1, value2);
    crate::ended(result, source)
}

fn call_4(target: AnyHandle, source: &mut dyn crate::Source) -> crate::Outcome {
    let Ok(target) = target.downcast::<dyn Whole>() else { return crate::Outcome::OtherType };
    let Ok(value0) = <UserBuf<'_> as crate::Hostile>::make(source) else { return crate::Outcome::Unmade };
    let Ok(value1) = <u8 as crate::Hostile>::make(source) else { return crate::Outcome::Unmade };
    source.begins(&format_args!("to: {value0:?}, byte: {value1:?}"));
    let result = target.fill(&value0, value1);
    crate::ended(result, source)
}

fn call_5(target: AnyHandle, source: &mut dyn crate::Source) -> crate::Outcome {
    let Ok(target) = target.downcast::<dyn Whole>() else { return crate::Outcome::OtherType };
    let Ok(value0) = <RRef<Sample> as crate::Hostile>::make(source) else { return crate::Outcome::Unmade };
    let Ok(value1) = <RVec<Measure> as crate::Hostile>::make(source) else { return crate::Outcome::Unmade };
    let Ok(value2) = <RVec<u8> as crate::Hostile>::make(source) else { return crate::Outcome::Unmade };
    source.begins(&format_args!("lent: {value0:?}, bytes: {value1:?}, buffer: {value2:?}"));
    let result = target.work(&value0, &value1, value2);
    crate::ended(result, source)
}

fn call_6(target: AnyHandle, source: &mut dyn crate::Source) -> crate::Outcome {
    let Ok(target) = target.downcast::<dyn Whole>() else { return crate::Outcome::OtherType };
    let Ok(value0) = <Handle<dyn Part> as crate::Hostile>::make(source) else { return crate::Outcome::Unmade };
    let Ok(value1) = <Option<Handle<dyn Part>> as crate::Hostile>::make(source) else { return crate::Outcome::Unmade };
    let Ok(value2) = <Parcel as crate::Hostile>::make(source) else { return crate::Outcome::Unmade };
    let Ok(value3) = <u128 as crate::Hostile>::make(source) else { return crate::Outcome::Unmade };
    source.begins(&format_args!("part: {value0:?}, more: {value1:?}, parcel: {value2:?}, number: {value3:?}"));
    let result = target.link(value0, value1, value2, value3);
    crate::ended(result, source)
}

/// Every method, in the order of the files.
pub static METHODS: &[crate::Method] = &[
    crate::Method {
        interface: 0x06c03537748bdea6,
        of: "Part",
        name: "number",
        gives: &[],
        waits: false,
        call: call_0,
    },
    crate::Method {
        interface: 0x06c03537748bdea6,
        of: "Part",
        name: "join",
        gives: &[],
        waits: false,
        call: call_1,
    },
    crate::Method {
        interface: 0x5774a41b761c175b,
        of: "Whole",
        name: "nothing",
        gives: &[],
        waits: false,
        call: call_2,
    },
    crate::Method {
        interface: 0x5774a41b761c175b,
        of: "Whole",
        name: "plain",
        gives: &[],
        waits: false,
        call: call_3,
    },
    crate::Method {
        interface: 0x5774a41b761c175b,
        of: "Whole",
        name: "fill",
        gives: &[],
        waits: false,
        call: call_4,
    },
    crate::Method {
        interface: 0x5774a41b761c175b,
        of: "Whole",
        name: "work",
        gives: &[],
        waits: false,
        call: call_5,
    },
    crate::Method {
        interface: 0x5774a41b761c175b,
        of: "Whole",
        name: "link",
        gives: &[0x5774a41b761c175b],
        waits: true,
        call: call_6,
    },
];
