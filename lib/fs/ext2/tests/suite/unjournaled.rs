//! Power cuts without a journal: nothing that a cut leaves is taken for damage.

use ext2::FileSystem;

use crate::host::*;
use crate::model::{Model, step};

/// Counters are older than bitmaps after a cut, never smaller: what the next mount makes of that
/// is no damage.
#[test]
fn what_a_cut_leaves_is_not_taken_for_damage() {
    let base = empty(1024, 12 << 10);
    let mut lagged = 0;
    for seed in 0..80 {
        let mut random = Random(seed);
        let disk = Disk::new(base.clone());
        let budget = [0, 4 << 20][seed as usize % 2];
        let mut fs = FileSystem::mount(&disk, options(false, budget)).unwrap();
        disk.remember();
        disk.requests_left.set(Some(3 + random.below(90) as u32));
        let mut model = Model::new();
        while step(&mut fs, &mut model, &mut random).is_ok() {
            if random.below(9) == 0 && fs.commit().is_err() {
                break;
            }
        }
        drop(fs);
        let disk = Disk::new(disk.cut(&mut random));
        let mut fs = mount(&disk);
        lagged += u32::from(!fs.was_clean());
        let root = fs.root();
        let dir = fs.mkdir(root, b"after", 0o755).unwrap();
        for n in 0..20 {
            let ino = fs.create(dir, format!("{n}").as_bytes(), 0o644).unwrap();
            write_all(&mut fs, ino, 0, &[1; 3000]).unwrap();
        }
        assert_eq!(fs.take_distrusted(), [], "seed {seed}");
        fs.unmount().unwrap();
    }
    assert!(lagged > 60, "{lagged}");
}
