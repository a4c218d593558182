//! Path from the root to a value, kept on the stack and formatted only for errors.

use std::fmt;

/// A linked list of segments; the root has no segment.
#[derive(Clone, Copy)]
pub(super) struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    segment: Segment<'a>,
}

#[derive(Clone, Copy)]
enum Segment<'a> {
    Root,
    Field(&'a str),
    /// Formatted in brackets.
    Key(&'a str),
    Index(usize),
}

impl Path<'static> {
    pub(super) const ROOT: Path<'static> = Path { parent: None, segment: Segment::Root };
}

impl<'a> Path<'a> {
    pub(super) fn field(&'a self, name: &'a str) -> Path<'a> {
        Path { parent: Some(self), segment: Segment::Field(name) }
    }

    pub(super) fn key(&'a self, key: &'a str) -> Path<'a> {
        Path { parent: Some(self), segment: Segment::Key(key) }
    }

    pub(super) fn index(&'a self, index: usize) -> Path<'a> {
        Path { parent: Some(self), segment: Segment::Index(index) }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut at_start = true;
        if let Some(parent) = self.parent {
            parent.write(f)?;
            at_start = matches!(parent.segment, Segment::Root);
        }
        match self.segment {
            Segment::Root => Ok(()),
            Segment::Index(index) => write!(f, "[{index}]"),
            Segment::Key(key) => write!(f, "[{key}]"),
            // Map keys such as `example.com/x` would read as several fields.
            Segment::Field(name) if name.contains(['.', '/', '[']) => write!(f, "[{name}]"),
            Segment::Field(name) if at_start => f.write_str(name),
            Segment::Field(name) => write!(f, ".{name}"),
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.segment {
            Segment::Root => f.write_str("<nil>"),
            _ => self.write(f),
        }
    }
}
