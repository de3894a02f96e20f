//! How an instance is started: with which grants, limits and options.

use super::grants;
use crate::failure::{self, Failure};
use crate::images::Prepared;
use crate::last_words::LogEnd;
use crate::service::{Running, Unstarted};
use crate::system::System;
use crate::version::Version;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use domain_rt::log;
use interfaces::{AnyHandle, DomainSpec, RVec, RpcError, RpcResult, StartError, Text};
use manifest::model::MOST_GRANTS;
use manifest::{DomainIndex, Limits};

/// In `pass`: how much memory is free, in bytes, which is no word of the command line.
const FREE_MEMORY: &str = "free-memory";

/// Threads that a domain may create where the manifest says nothing.
const THREADS: u32 = 64;
/// Bytes in a page.
const PAGE: u64 = 4096;
impl System {
    /// Starts an instance of this version; without one, of the image that the manifest names.
    ///
    /// # Errors
    /// How it ended.
    pub fn start_once(
        self: &Arc<Self>,
        index: DomainIndex,
        version: Option<&Version>,
    ) -> Result<Running, Unstarted> {
        let domain = &self.manifest[index];
        let cause =
            |text: String| Unstarted::Failed(Failure::Cause(format!("{}: {text}", domain.name)));
        let no_memory = || Unstarted::Failed(Failure::NoMemory(domain.name.clone()));
        let named = || self.services[index].image.as_ref();
        let prepared = version.map_or_else(named, |version| Ok(&version.image));
        let prepared = prepared.map_err(|text| cause(text.clone()))?;
        let (grants, served_by) = self.grants(index, prepared).map_err(Unstarted::Failed)?;
        let own = version.and_then(|version| version.options.as_deref());
        let options = self
            .options(index, own.unwrap_or(&domain.options))
            .map_err(|error| Unstarted::Failed(Failure::of_call(&domain.name, error, "")))?;
        let log = LogEnd::now(&self.kernel.monitor);
        let started = prepared.image.start(self.spec(index), grants, options);
        let started = started.map_err(|error| match error {
            StartError::Crashed => Unstarted::Crashed,
            StartError::Rpc(RpcError::NoMemory) | StartError::Failed(RpcError::NoMemory) => {
                no_memory()
            }
            StartError::Rpc(RpcError::Interrupted) | StartError::Failed(RpcError::Interrupted) => {
                Unstarted::Failed(Failure::Interrupted)
            }
            StartError::Failed(_) => {
                let said = log.last_words(&domain.name);
                cause(said.unwrap_or_else(|| failure::start(&error)))
            }
            other => cause(failure::start(&other)),
        })?;
        let info = started
            .control
            .info()
            .map_err(|error| Unstarted::Failed(Failure::of_call(&domain.name, error, "")))?;
        Ok(Running {
            id: info.id,
            image: prepared.name,
            offers: started.offers,
            control: started.control,
            served_by,
        })
    }

    /// Finds all grants, in the order of the image's wants. A grant that the image can do without
    /// is left out if it is not to be had.
    #[allow(clippy::type_complexity, reason = "two halves of one answer")]
    fn grants(
        self: &Arc<Self>,
        index: DomainIndex,
        image: &Prepared,
    ) -> Result<([Option<AnyHandle>; MOST_GRANTS], Vec<(DomainIndex, u32)>), Failure> {
        let domain = &self.manifest[index];
        let mut grants = [const { None }; MOST_GRANTS];
        let mut served_by = Vec::new();
        for (port, place) in image.wants.iter().zip(&mut grants) {
            let number = domain
                .grants
                .iter()
                .position(|grant| grant.port == port.name.as_str());
            let Some(number) = number else {
                continue;
            };
            match grants::resolve(self, index, number) {
                Ok(granted) => {
                    *place = Some(granted.handle);
                    served_by.extend(granted.served_by.filter(|_| !port.optional));
                }
                Err(failure) if port.optional => log!(
                    "{}: without `{}`: {}",
                    domain.name,
                    port.name,
                    failure.text()
                ),
                Err(failure) => return Err(failure),
            }
        }
        Ok((grants, served_by))
    }

    fn spec(&self, index: DomainIndex) -> DomainSpec {
        let domain = &self.manifest[index];
        let memory = self.kernel.monitor.memory();
        let total = memory.map_or(0, |memory| memory.total / PAGE);
        let half = total / 2;
        let or_half = |pages: u64| if pages == 0 { half } else { pages };
        let Limits {
            pages,
            shared_pages,
            threads,
            calls,
            call_ms,
            total_pages,
            reserve_pages,
            log_rate,
            weight,
            cpu_percent,
            deadline_percent,
            ..
        } = domain.limits;
        let threads = if threads == 0 { THREADS } else { threads };
        DomainSpec {
            name: Text::new(&domain.name),
            page_limit: or_half(pages),
            shared_limit: or_half(shared_pages),
            thread_limit: threads,
            call_limit: calls,
            call_budget_ms: call_ms,
            reserve_pages,
            log_rate,
            // So what its instances leave behind is paid for by its place in the manifest.
            group: index.number(),
            group_pages: if total_pages == 0 {
                total / 4 * 3
            } else {
                total_pages
            },
            group_threads: threads,
            weight,
            cpu_percent,
            deadline_percent,
        }
    }

    /// The domain's options, one setting in a line: `own`, which are those of the manifest or of an
    /// update, the words passed on from the command line, how much memory is free, if it is to
    /// know, and for the personality what each program may ask for.
    fn options(&self, index: DomainIndex, own: &str) -> RpcResult<RVec<u8>> {
        let domain = &self.manifest[index];
        let mut lines = Vec::from([String::from(own)]);
        let passed = |word: &String| match word.as_str() {
            FREE_MEMORY => Some(format!(
                "{FREE_MEMORY}={}",
                self.kernel.monitor.memory().ok()?.free
            )),
            word => self.passed(index, word).map(String::from),
        };
        lines.extend(domain.pass.iter().filter_map(passed));
        if self.manifest.boot.personality.as_ref() == Some(&domain.name) {
            let line = |program: &manifest::Program| {
                format!("program {}: {}", program.name, program.services.join(" "))
            };
            lines.extend(self.manifest.programs.iter().map(line));
            lines.push(format!("command-line {}", self.words.line()));
            lines.extend(
                self.root_disk(index)
                    .map(|name| format!("root-disk {name}")),
            );
        }
        lines.retain(|line| !line.is_empty());
        RVec::from_slice(lines.join("\n").as_bytes())
    }
}
