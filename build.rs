//! Finds the prebuilt DuckDB library and tells the linker where binaries look for it. Generates nothing.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=DUCKDB_LIB_DIR");
    if std::env::var_os("CARGO_FEATURE_BUNDLED").is_some() {
        return;
    }
    let folder = std::env::var("DUCKDB_LIB_DIR").unwrap_or_else(|_| ".duckdb/current".to_owned());
    let library = std::path::Path::new(&folder).join("libduckdb.so");
    println!("cargo::rerun-if-changed={}", library.display());
    if !library.exists() {
        println!(
            "cargo::error=the prebuilt DuckDB library is not at {}: run `make lib` to fetch it, or build with `--features bundled`",
            library.display()
        );
        return;
    }
    let release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let search = if release { "$ORIGIN" } else { folder.as_str() };
    println!("cargo::rustc-link-arg=-Wl,-rpath,{search}");
}
