//! cloud-config as the bootstrap provider writes it and the Docker provider reads it: what is read goes to paths that are what they
//! seem, and what is written is read as it was meant, by another YAML reader too.

use arbitrary::{Result, Unstructured};
use docker_infra::fuzzing::cloud_config;
use kubeadm_bootstrap::cloud_config::CloudConfig;
use kubeadm_bootstrap::userdata::WriteFile;
use serde_json::Value;

use crate::json::{list, text};

/// What commands and files of a machine look like, and what YAML readers trip over.
const WORDS: [&str; 16] = [
    "kubeadm init --config /run/kubeadm/kubeadm.yaml",
    "a: b\n",
    "  indented\nless\n",
    "- item # comment",
    "no",
    "0777",
    "~",
    "1_000.5e3",
    "\t",
    "'\"\\",
    "\u{feff}bom",
    "\u{85}\u{2028}next",
    "\r\n",
    "\u{7f}\u{1}",
    "",
    "--- # end\n...\n",
];

pub fn run(data: &[u8]) {
    read(data);
    let _ = written(&mut Unstructured::new(data));
}

fn read(data: &[u8]) {
    let Ok(boot) = cloud_config(data, "machine-1") else { return };
    for (path, _, mode) in &boot.files {
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        let plain = path.starts_with('/') && parts.iter().all(|part| !["", ".", ".."].contains(part));
        assert!(plain && !path.contains('\0'), "a file goes to {path:?}");
        assert!(*mode <= 0o7777, "{path:?} has mode {mode:o}");
    }
}

fn written(u: &mut Unstructured<'_>) -> Result<()> {
    let mut texts = |most| list(u, most, |u| Ok(text(u, &WORDS)? + &text(u, &WORDS)?));
    let (before, contents, commands) = (texts(2)?, texts(3)?, texts(3)?);
    // Machines fill in what looks like a template, on purpose.
    if [&before, &contents, &commands].into_iter().flatten().any(|text| text.contains("{{")) {
        return Ok(());
    }
    let files = contents.iter().enumerate();
    let rendered = CloudConfig {
        boot_commands: &before,
        files: files.map(|(n, text)| WriteFile::of_root(format!("/etc/{n}"), "0640", text.clone())).collect(),
        run_commands: commands.clone(),
        ..CloudConfig::default()
    }
    .render();
    let boot = cloud_config(rendered.as_bytes(), "machine-1").unwrap_or_else(|why| panic!("{why}\n{rendered}"));
    assert_eq!((&boot.before, &boot.commands), (&before, &commands), "{rendered}");
    let read: Vec<&[u8]> = boot.files.iter().map(|(_, content, _)| content.as_slice()).collect();
    assert_eq!(read, contents.iter().map(String::as_bytes).collect::<Vec<_>>(), "{rendered}");
    let other: Value = serde_saphyr::from_str(&rendered).unwrap_or_else(|why| panic!("{why}\n{rendered}"));
    let told = |of: &str| other[of].as_array().cloned().unwrap_or_default();
    assert_eq!((told("bootcmd"), told("runcmd")), (values(&before), values(&commands)), "{rendered}");
    let other: Vec<Value> = told("write_files").into_iter().map(|file| file["content"].clone()).collect();
    assert_eq!(other, values(&contents), "{rendered}");
    Ok(())
}

fn values(texts: &[String]) -> Vec<Value> {
    texts.iter().map(|text| Value::String(text.clone())).collect()
}
