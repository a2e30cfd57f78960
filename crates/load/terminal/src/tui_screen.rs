//! The terminal's alternate screen.

use std::io::{self, BufWriter, Stderr, Write};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};
use ratatui::layout::{Rect, Size};

use super::run_view::RunView;
use super::view_layout::{render, text};

/// The terminal's alternate screen, on stderr; dropping it gives back what was there before.
#[derive(Debug)]
pub struct TuiScreen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stderr>>>,
    /// Size that was drawn last.
    size: Size,
    /// Whether the screen shows the terminal's own lines, with a copy.
    is_away: bool,
    /// Whether the process is about to stop, or in the background.
    is_suspended: bool,
}

impl TuiScreen {
    /// Takes the screen.
    ///
    /// # Errors
    /// The terminal cannot be written, or has no size.
    pub fn open() -> io::Result<Self> {
        let terminal = Terminal::new(CrosstermBackend::new(BufWriter::new(io::stderr())))?;
        execute!(io::stderr(), EnterAlternateScreen, Hide)?;
        Ok(Self { terminal, size: Size::default(), is_away: false, is_suspended: false })
    }

    /// Whether the size is another than what was drawn.
    pub fn is_resized(&self) -> bool {
        self.terminal.size().is_ok_and(|size| size != self.size)
    }

    /// Draws the view; a closed terminal is ignored.
    pub fn draw(&mut self, view: &RunView) {
        if self.is_away || self.is_suspended {
            return;
        }
        self.size = self.terminal.size().unwrap_or(self.size);
        let _ = self.terminal.draw(|frame| render(view, frame.area(), frame.buffer_mut()));
    }

    /// Leaves the screen until [`resume`](Self::resume): the process is about to stop.
    pub fn suspend(&mut self) {
        if !std::mem::replace(&mut self.is_suspended, true) && !self.is_away {
            let _ = execute!(io::stderr(), LeaveAlternateScreen, Show);
        }
    }

    /// Takes the screen again.
    pub fn resume(&mut self, view: &RunView) {
        if std::mem::replace(&mut self.is_suspended, false) && !self.is_away {
            self.take(view);
        }
    }

    /// Leaves the screen and prints the view as text, or comes back.
    pub fn toggle_copy(&mut self, view: &RunView) {
        self.is_away = !self.is_away;
        // A closed terminal is ignored.
        if self.is_away {
            let size = self.terminal.size().unwrap_or(self.size);
            let copy = text(view, size.width, size.height);
            let _ = execute!(io::stderr(), LeaveAlternateScreen, Show);
            let _ = writeln!(io::stderr(), "{copy}\nweir: c goes back to the screen");
        } else {
            self.take(view);
        }
    }

    /// Enters the screen once more, and draws all of it; a closed terminal is ignored.
    fn take(&mut self, view: &RunView) {
        let _ = execute!(io::stderr(), EnterAlternateScreen, Hide);
        // Clears it. `Terminal::clear` would ask the terminal where the cursor is, and read the response among the keys.
        let size = self.terminal.size().unwrap_or(self.size);
        let _ = self.terminal.resize(Rect::from(size));
        self.draw(view);
    }
}

impl Drop for TuiScreen {
    fn drop(&mut self) {
        if !self.is_away && !self.is_suspended {
            let _ = execute!(io::stderr(), LeaveAlternateScreen, Show);
        }
    }
}
