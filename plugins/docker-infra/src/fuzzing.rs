//! Internals for the fuzz targets in `fuzz/`. Not a stable API.

use crate::cloud_config;

/// What a machine does with a cloud-config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boot {
    /// Commands before the files.
    pub before: Vec<String>,
    /// Path, content and mode of each file.
    pub files: Vec<(String, Vec<u8>, u32)>,
    /// Commands after the files.
    pub commands: Vec<String>,
}

/// Reads a cloud-config for the machine of that name.
///
/// # Errors
/// Why it is refused.
pub fn cloud_config(bytes: &[u8], machine: &str) -> Result<Boot, String> {
    let recipe = cloud_config::parse(bytes, machine).map_err(|error| error.to_string())?;
    let scripts = |steps: Vec<crate::recipe::Step>| steps.into_iter().map(|step| step.script).collect();
    Ok(Boot {
        before: scripts(recipe.before),
        files: recipe.files.into_iter().map(|file| (file.path, file.content, file.attributes.mode)).collect(),
        commands: scripts(recipe.commands),
    })
}
