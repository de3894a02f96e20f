// Written by idlc from the .idl files. Do not edit.

isolation::proxy! { PartProxy: interfaces::Part, "Part" {
    fn number(&self) -> Result<u32, interfaces::RpcError>;
        moved []; budget 0; frees false; seen [] []; fails (_);
    fn join(&self, other: interfaces::Handle<dyn interfaces::Part>) -> Result<u32, interfaces::RpcError>;
        moved [other]; budget 0; frees false; seen [] []; fails (_);
} }

isolation::proxy! { WholeProxy: interfaces::Whole, "Whole" {
    fn nothing(&self) -> Result<(), interfaces::RpcError>;
        moved []; budget 0; frees false; seen [] []; fails (_);
    fn plain(
        &self,
        measure: interfaces::Measure,
        state: interfaces::State,
        flag: bool,
    ) -> Result<interfaces::State, interfaces::SampleError>;
        moved []; budget 0; frees false; seen [flag] []; fails (interfaces::SampleError::Rpc(_));
    fn fill(&self, to: &interfaces::UserBuf<'_>, byte: u8) -> Result<u64, interfaces::SampleError>;
        moved []; budget 0; frees false; seen [byte] []; fails (interfaces::SampleError::Rpc(_));
    fn work(
        &self,
        lent: &interfaces::RRef<interfaces::Sample>,
        bytes: &interfaces::RVec<interfaces::Measure>,
        buffer: interfaces::RVec<u8>,
    ) -> Result<(interfaces::RVec<u8>, u64), interfaces::SampleError>;
        moved [buffer]; budget 1500; frees false; seen [] [bytes, buffer]; fails (interfaces::SampleError::Rpc(_));
    fn link(
        &self,
        part: interfaces::Handle<dyn interfaces::Part>,
        more: Option<interfaces::Handle<dyn interfaces::Part>>,
        parcel: interfaces::Parcel,
        number: u128,
    ) -> Result<interfaces::Handle<dyn interfaces::Whole>, interfaces::SampleError>;
        moved [part, more, parcel]; budget 0xffffffff; frees true; seen [] []; fails (interfaces::SampleError::Rpc(_));
} }

/// Every interface with its proxy, in ascending order of the interface numbers.
pub static REGISTRY: &[isolation::ProxyEntry] = &[
    PartProxy::entry(0x06c03537748bdea6),
    WholeProxy::entry(0x5774a41b761c175b),
];
