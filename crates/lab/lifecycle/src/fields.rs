//! The fields that somebody wants, so that a line is read once for all of them.

/// Most segments of a field path.
pub const MAX_DEPTH: usize = 16;

/// Names under which a line has its time, the best first.
pub(crate) const TIME: [&str; 4] = ["timestamp", "time", "ts", "@timestamp"];
/// Names under which a line has its message, the best first.
pub(crate) const MESSAGE: [&str; 3] = ["message", "msg", "event"];
const SOURCE: &str = "source";

/// A wanted field, as [`Fields::register`] numbered it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldId(pub(crate) usize);

impl FieldId {
    pub(crate) const SOURCE: FieldId = FieldId(TIME.len() + MESSAGE.len());

    pub(crate) fn times() -> impl Iterator<Item = FieldId> {
        (0..TIME.len()).map(FieldId)
    }

    pub(crate) fn messages() -> impl Iterator<Item = FieldId> {
        (TIME.len()..TIME.len() + MESSAGE.len()).map(FieldId)
    }
}

/// The set of wanted fields. Time, message and source are always in it.
#[derive(Debug)]
pub struct Fields {
    pub(crate) root: Node,
    paths: Vec<String>,
}

impl Fields {
    /// Only what every line is asked for.
    pub fn new() -> Self {
        let mut fields = Self {
            root: Node::default(),
            paths: Vec::new(),
        };
        for name in TIME.into_iter().chain(MESSAGE).chain([SOURCE]) {
            fields.register(name);
        }
        fields
    }

    /// Adds a field. The path `a.b` stands for the member `b` of the object `a`,
    /// and for a member that is itself called `a.b`. Segments after the first
    /// [`MAX_DEPTH`] stay together as one name. The same path gives the same id.
    pub fn register(&mut self, path: &str) -> FieldId {
        if let Some(known) = self.paths.iter().position(|known| known == path) {
            return FieldId(known);
        }
        let id = self.paths.len();
        self.paths.push(path.to_owned());
        self.root.child_mut(path).slot = Some(id);
        if path.contains('.') {
            let mut segments = path.splitn(MAX_DEPTH, '.').peekable();
            let mut node = &mut self.root;
            while let Some(segment) = segments.next() {
                let child = node.child_mut(segment);
                if segments.peek().is_none() {
                    child.slot = Some(id);
                    break;
                }
                node = child.node.get_or_insert_default();
            }
        }
        FieldId(id)
    }

    /// How many fields are wanted.
    pub(crate) fn len(&self) -> usize {
        self.paths.len()
    }
}

impl Default for Fields {
    fn default() -> Self {
        Self::new()
    }
}

/// The wanted members of an object.
#[derive(Debug, Default)]
pub(crate) struct Node {
    children: Vec<(Box<[u8]>, Child)>,
    /// Bit `n` is set when a child's name has `n` bytes (63: or more). Most
    /// members of a line are not wanted, and most of these are ruled out here.
    lengths: u64,
}

/// What is wanted of a member.
#[derive(Debug, Default)]
pub(crate) struct Child {
    /// Its own value goes here.
    pub(crate) slot: Option<usize>,
    /// Members of its value that are wanted.
    pub(crate) node: Option<Box<Node>>,
}

impl Node {
    pub(crate) fn child(&self, name: &[u8]) -> Option<&Child> {
        if self.lengths & length_bit(name) == 0 {
            return None;
        }
        self.children
            .iter()
            .find(|(known, _)| **known == *name)
            .map(|(_, child)| child)
    }

    fn child_mut(&mut self, name: &str) -> &mut Child {
        let name = name.as_bytes();
        let at = self
            .children
            .iter()
            .position(|(known, _)| **known == *name)
            .unwrap_or_else(|| {
                self.lengths |= length_bit(name);
                self.children.push((name.into(), Child::default()));
                self.children.len() - 1
            });
        &mut self.children[at].1
    }
}

fn length_bit(name: &[u8]) -> u64 {
    1 << name.len().min(63)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_path_has_one_id() {
        let mut fields = Fields::new();
        let guid = fields.register("key.guid");
        assert_eq!(fields.register("key.guid"), guid);
        assert_ne!(fields.register("key.index"), guid);
        assert_eq!(fields.register("source"), FieldId::SOURCE);
        assert_eq!(fields.register("timestamp"), FieldId(0));
    }

    #[test]
    fn a_dotted_path_is_wanted_nested_and_as_one_name() {
        let mut fields = Fields::new();
        let id = fields.register("a.b.c");
        let literal = fields.root.child(b"a.b.c").and_then(|child| child.slot);
        assert_eq!(literal, Some(id.0));
        let a = fields
            .root
            .child(b"a")
            .and_then(|child| child.node.as_deref())
            .unwrap();
        let b = a
            .child(b"b")
            .and_then(|child| child.node.as_deref())
            .unwrap();
        assert_eq!(b.child(b"c").and_then(|child| child.slot), Some(id.0));
        assert!(a.child(b"c").is_none());
    }
}
