//! Any sequence of operations, with remounts and a power cut anywhere, which `proptest` makes
//! shorter when it fails: each operation is chosen by a number of its own, so that the others stay
//! when one is left out.

use std::sync::LazyLock;

use ext2::{Error, FileSystem};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::few::few;
use crate::host::*;
use crate::model::{Model, read_model, step};
use crate::power::{History, assert_same, recover};

/// What follows an operation.
#[derive(Clone, Copy, Debug)]
enum Then {
    Nothing,
    Sync,
    Commit,
    /// Some file is opened and stays so, so that removing it leaves an orphan.
    Open,
    Remount,
}

fn then() -> impl Strategy<Value = Then> {
    prop_oneof![
        20 => Just(Then::Nothing),
        1 => Just(Then::Sync),
        2 => Just(Then::Commit),
        1 => Just(Then::Open),
        1 => Just(Then::Remount),
    ]
}

/// Works as the numbers say until they end or the device dies. Whether it died.
fn work(
    disk: &Disk,
    budget: usize,
    steps: &[(u64, Then)],
    history: &mut History,
) -> Result<(), Error> {
    let mut fs = FileSystem::mount(disk, options(false, budget))?;
    for (number, then) in steps {
        let mut model = history.now().clone();
        let done = step(&mut fs, &mut model, &mut Random(*number));
        history.moments.push(model);
        done?;
        match then {
            Then::Nothing => continue,
            Then::Open => {
                let path = history.now().keys().next().cloned().unwrap_or_default();
                let ino = walk(&mut fs, &path)?;
                fs.open(ino)?;
                continue;
            }
            Then::Sync => fs.sync()?,
            Then::Commit => fs.commit()?,
            Then::Remount => {
                fs.unmount()?;
                drop(fs);
                fs = FileSystem::mount(disk, options(false, budget))?;
            }
        }
        history.acknowledge();
    }
    fs.unmount()?;
    history.acknowledge();
    Ok(())
}

static EXT3: LazyLock<Vec<u8>> =
    LazyLock::new(|| make_image("-t ext3 -b 1024 -J size=1", None, 6 << 10));
static EXT2: LazyLock<Vec<u8>> = LazyLock::new(|| empty(1024, 6 << 10));

proptest! {
    #![proptest_config(few(60))]

    /// With a journal, what was acknowledged is there after a power cut, and the rest is that of
    /// one moment.
    #[test]
    fn a_power_cut_loses_nothing_that_was_acknowledged(
        steps in vec((any::<u64>(), then()), 1..120),
        requests in 1..120u32,
        dice in any::<u64>(),
        budget in prop_oneof![Just(0usize), Just(4 << 20)],
    ) {
        let disk = Disk::new(EXT3.clone());
        disk.remember();
        disk.requests_left.set(Some(requests));
        let mut history = History { moments: vec![Model::new()] };
        let ended = work(&disk, budget, &steps, &mut history);
        prop_assert!(matches!(ended, Ok(()) | Err(Error::Device(_))), "{ended:?}");
        let image = disk.cut(&mut Random(dice));
        let (found, after) = recover(image);
        history.check(&found);
        assert_clean(&after);
        // It stays as it is.
        assert_same(&recover(after).0, &found);
    }

    /// Without a journal, whatever is done agrees with the model and leaves nothing for e2fsck.
    #[test]
    fn remounts_change_nothing(
        steps in vec((any::<u64>(), then()), 1..150),
        budget in prop_oneof![Just(0usize), Just(4 << 20)],
    ) {
        let disk = Disk::new(EXT2.clone());
        let mut history = History { moments: vec![Model::new()] };
        let ended = work(&disk, budget, &steps, &mut history);
        prop_assert!(ended.is_ok(), "{ended:?}");
        assert_clean(&disk.image());
        let mut fs = mount(&disk);
        assert_same(&read_model(&mut fs), history.now());
    }
}
