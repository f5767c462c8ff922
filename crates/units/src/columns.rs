//! Text in columns.

use std::fmt::{Formatter, Result};

/// A blank line and rows below their heads, in columns as wide as they must be; nothing
/// without rows.
pub fn table(text: &mut Formatter<'_>, heads: &[&str], rows: &[Vec<String>]) -> Result {
    if rows.is_empty() {
        return Ok(());
    }
    let wide = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        let widths = cells.map(|cell| cell.chars().count());
        widths.max().unwrap_or(0).max(heads[column].chars().count())
    };
    let widths: Vec<usize> = (0..heads.len()).map(wide).collect();
    writeln!(text)?;
    let heads = heads.iter().map(|head| (*head).to_owned()).collect();
    for row in std::iter::once(&heads).chain(rows) {
        let mut line = String::new();
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            match at {
                0 => line += &format!("{cell:<width$}"),
                _ => line += &format!("  {cell:>width$}"),
            }
        }
        writeln!(text, "{}", line.trim_end())?;
    }
    Ok(())
}
