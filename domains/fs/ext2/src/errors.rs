//! Errors of the device as `lib/fs/ext2` knows them.

use ext2::DeviceError;
use interfaces::{BlockError, BlockOutcome, QueueError, RpcError};

/// The failure of a request, if it is one.
pub fn outcome_error(outcome: BlockOutcome) -> Option<DeviceError> {
    match outcome {
        BlockOutcome::Done => None,
        BlockOutcome::OutOfRange => Some(DeviceError::OutOfRange),
        BlockOutcome::NoMemory => Some(DeviceError::NoMemory),
        BlockOutcome::Device
        | BlockOutcome::ReadOnly
        | BlockOutcome::Unsupported
        | BlockOutcome::BadSlot
        | BlockOutcome::Memory => Some(DeviceError::Io),
    }
}

/// What it means that a call of the queue failed.
pub fn failure(error: &QueueError) -> DeviceError {
    match error {
        QueueError::Rpc(error) => rpc_error(*error),
        QueueError::Fenced => DeviceError::Lost,
        QueueError::Gone => DeviceError::Unavailable,
        _ => DeviceError::Io,
    }
}

/// What it means that a call failed.
pub fn rpc_error(error: RpcError) -> DeviceError {
    match error {
        RpcError::NoMemory => DeviceError::NoMemory,
        RpcError::DomainCrashed => DeviceError::Lost,
        RpcError::Interrupted => DeviceError::Interrupted,
        _ => DeviceError::Io,
    }
}

/// What it means that no queue was opened.
pub fn block_error(error: BlockError) -> DeviceError {
    match error {
        BlockError::Rpc(error) => rpc_error(error),
        BlockError::Device | BlockError::Unsupported => DeviceError::Io,
        BlockError::Gone => DeviceError::Unavailable,
    }
}
