//! Regenerates committed sources: `cargo run -p xtask -- proto`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

fn main() -> Result<()> {
    let root = root();
    match std::env::args().nth(1).as_deref() {
        Some("proto") => generate(&root.join("proto"), &root.join("crates/diego/src/proto")),
        other => bail!("unknown task {other:?}; tasks: proto"),
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Compiles every `.proto` file in `from` into one Rust file each in `to`.
///
/// The compiler is pure Rust, so nobody needs protoc. Maps become B-trees, so
/// that the same message always has the same bytes.
fn generate(from: &Path, to: &Path) -> Result<()> {
    let files = ["bbs.proto", "locket.proto"];
    let descriptors = protox::compile(files, [from]).context("compile proto/*.proto")?;
    let mut config = prost_build::Config::new();
    config.btree_map(["."]).out_dir(to);
    config
        .compile_fds(descriptors)
        .context("generate Rust from proto/*.proto")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn committed_messages_are_what_the_proto_files_say() {
        let out = tempfile::tempdir().unwrap();
        generate(&root().join("proto"), out.path()).unwrap();
        for file in ["models.rs", "locket.rs"] {
            let fresh = std::fs::read_to_string(out.path().join(file)).unwrap();
            let committed = root().join("crates/diego/src/proto").join(file);
            assert!(
                fresh == std::fs::read_to_string(&committed).unwrap(),
                "{} is stale: run `cargo run -p xtask -- proto`",
                committed.display()
            );
        }
    }
}
