//! The folder of compiled components: used again, never trusted.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use capwasm_runtime::{Limits, Runtime, RuntimeOptions};

use crate::support::{guest, options};

fn in_dir(dir: &Path) -> RuntimeOptions {
    RuntimeOptions { aot_dir: Some(dir.to_owned()), ..options() }
}

async fn load(dir: &Path) -> PathBuf {
    let runtime = Runtime::new(in_dir(dir)).unwrap();
    let provider = runtime.load(&guest(), Limits::default()).await.unwrap();
    let digest = provider.digest().strip_prefix("sha256:").unwrap().to_owned();
    let mut files: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let file = files.remove(0);
    assert!(file.file_name().unwrap().to_str().unwrap().starts_with(&digest));
    file
}

fn written(file: &Path) -> (u64, SystemTime) {
    let metadata = fs::metadata(file).unwrap();
    (metadata.ino(), metadata.modified().unwrap())
}

#[tokio::test]
async fn a_compiled_component_is_used_again_and_private() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("aot");
    let file = load(&dir).await;
    let first = written(&file);
    assert_eq!(fs::metadata(&dir).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(load(&dir).await, file);
    assert_eq!(written(&file), first);
}

#[tokio::test]
async fn a_damaged_or_exposed_file_is_compiled_anew() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("aot");
    let file = load(&dir).await;
    let good = fs::read(&file).unwrap();

    let mut damaged = good.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    for content in [damaged, Vec::new(), good[..good.len() / 2].to_vec(), b"something else".to_vec()] {
        fs::write(&file, content).unwrap();
        assert_eq!(load(&dir).await, file);
        assert_eq!(fs::read(&file).unwrap(), good);
    }

    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    load(&dir).await;
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn what_another_engine_made_is_not_used_and_goes() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("aot");
    let file = load(&dir).await;
    let name = file.file_name().unwrap().to_str().unwrap();
    let mut parts: Vec<&str> = name.split('-').collect();
    parts[1] = "0123456789abcdef";
    let foreign = dir.join(parts.join("-"));
    fs::rename(&file, &foreign).unwrap();
    assert_eq!(load(&dir).await, file);
    assert!(!foreign.exists());
}

#[tokio::test]
async fn a_link_out_of_the_folder_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("aot");
    let file = load(&dir).await;
    let outside = folder.path().join("outside");
    fs::rename(&file, &outside).unwrap();
    std::os::unix::fs::symlink(&outside, &file).unwrap();
    load(&dir).await;
    assert!(fs::symlink_metadata(&file).unwrap().is_file());
}

#[test]
fn a_folder_that_others_can_write_to_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o770)).unwrap();
    let error = Runtime::new(in_dir(folder.path())).err().unwrap();
    assert!(error.to_string().contains("mode 0700"), "{error}");
}
