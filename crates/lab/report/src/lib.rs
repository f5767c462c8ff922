//! A stored run as one self-contained HTML file and as a table in the terminal.
