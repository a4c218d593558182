//! Images of the engine that a machine has from the start.

use capwasm_sdk::{Context, Problem};

use super::Subject;
use crate::bootstrap::image_archive;
use crate::engine::{Container, Engine, Saved};
use crate::tar::{Attributes, Writer};

/// Puts the archives of all images into the container, for a step to import them. The engine pulls what it has not. One that
/// cannot be had is told and left out: the machine pulls it itself when it needs it.
pub fn upload(
    cx: &mut Context<'_>,
    subject: &Subject<'_>,
    engine: &Engine<'_>,
    container: &Container,
) -> Result<(), Problem> {
    for (number, image) in subject.spec.pre_load_images.iter().enumerate() {
        let saved = match engine.ensure_image(image) {
            Ok(()) => engine.save_image(image)?,
            Err(error) if error.is_not_found() => Saved::Not(error.to_string()),
            Err(error) => return Err(error.into()),
        };
        match saved {
            Saved::Archive(archive) => {
                let path = image_archive(number);
                let mut writer = Writer::default();
                writer.directory("capwasm", Attributes::root(0o700));
                writer.directory("capwasm/images", Attributes::root(0o700));
                writer.file(path.trim_start_matches('/'), Attributes::root(0o600), &archive);
                drop(archive);
                engine.put_archive(&container.id, "/", writer)?;
            }
            Saved::Not(why) => {
                cx.out.warning("ImageNotPreLoaded", format!("{image} is not loaded into {}: {why}", subject.name));
            }
        }
    }
    Ok(())
}
