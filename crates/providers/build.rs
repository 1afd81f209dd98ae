//! Turns `share/providers.yaml` into static data, so that nothing is parsed at run time.

#![allow(clippy::disallowed_methods, reason = "a build script reads the declaration and writes the generated file")]

use std::path::PathBuf;

#[path = "build/declaration.rs"]
mod declaration;

fn main() -> Result<(), String> {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").ok_or("cargo sets CARGO_MANIFEST_DIR")?;
    let out = std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    let declared = PathBuf::from(manifest).join("../../share/providers.yaml");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=build/declaration.rs");
    println!("cargo:rerun-if-changed={}", declared.display());

    let text = std::fs::read_to_string(&declared).map_err(|error| format!("share/providers.yaml: {error}"))?;
    let code = declaration::generate(&text).map_err(|error| format!("share/providers.yaml: {error}"))?;
    std::fs::write(PathBuf::from(out).join("providers.rs"), code).map_err(|error| format!("providers.rs: {error}"))
}
