//! Passes the framework's linker script to the linker when the kernel is built for the machine.

fn main() {
    println!("cargo:rerun-if-changed=../framework/kernel.ld");
    let target_os = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    if target_os == "none" {
        for argument in [
            "--no-pie",
            "-znorelro",
            "--build-id=none",
            &format!("-T{folder}/../framework/kernel.ld"),
        ] {
            println!("cargo:rustc-link-arg-bins={argument}");
        }
    }
}
