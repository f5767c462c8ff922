//! A form that prints: every key with its meaning.

use super::{Form, Mode};

impl Form<'_> {
    pub(super) fn print(&mut self, key: &str, about: &str, value: &str, example: &str) {
        let Mode::Print { text, .. } = &mut self.mode else {
            return;
        };
        write_about(text, about);
        match value.is_empty() {
            true => *text += &format!("# {key} = {example}\n"),
            false => *text += &format!("{key} = {value}\n"),
        }
    }

    pub(super) fn open_printed(&mut self, key: &str, about: &str, commented: bool) {
        let Mode::Print { text, path } = &mut self.mode else {
            return;
        };
        path.push(key.to_owned());
        text.push('\n');
        write_about(text, about);
        let mark = if commented { "# " } else { "" };
        *text += &format!("{mark}[{}]\n", path.join("."));
    }

    pub(super) fn close_printed(&mut self) {
        if let Mode::Print { path, .. } = &mut self.mode {
            path.pop();
        }
    }

    /// Prints a table that is not there, with its defaults, as a comment.
    pub(super) fn print_absent<T: Default>(
        &mut self,
        key: &str,
        about: &str,
        visit: impl FnOnce(&mut Self, &mut T),
    ) {
        let Mode::Print { text, path } = &self.mode else {
            return;
        };
        let (before, path) = (text.len(), path.clone());
        self.open_printed(key, about, true);
        let from = match &self.mode {
            Mode::Print { text, .. } => text.len(),
            Mode::Read(_) => before,
        };
        visit(self, &mut T::default());
        if let Mode::Print { text, path: now } = &mut self.mode {
            let inner = text.split_off(from);
            for line in inner.lines() {
                let mark = if line.starts_with('#') || line.is_empty() {
                    ""
                } else {
                    "# "
                };
                *text += &format!("{mark}{line}\n");
            }
            *now = path;
        }
    }
}

fn write_about(text: &mut String, about: &str) {
    for line in about.lines() {
        *text += &format!("# {line}\n");
    }
}
