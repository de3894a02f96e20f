//! Every manifest in `images/` is well-formed.

use manifest::Manifest;
use std::path::Path;

#[test]
fn all_manifests_of_the_repository_are_well_formed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../images");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("a readable folder").path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            let text = std::fs::read_to_string(&path).expect("a readable file");
            let result = Manifest::parse(&text);
            assert!(result.is_ok(), "{}: {:?}", path.display(), result.err());
            count += 1;
        }
    }
    assert!(count > 0);
}
