//! What callers over TCP show where the system does not tell whose connection is whose.
//!
//! A token is in a file that only its user reads: whoever knows it is that user. It is new at each start of a server, so
//! one that somebody has seen is good for no later one.

use std::io;
use std::path::{Path, PathBuf};

use crate::clock::hex_prefix;
use crate::store::Store;

/// The token's file in the state folder.
const NAME: &str = "token";
/// How many random bytes a token is made of.
const BYTES: usize = 16;
/// The most bytes of the file that are read.
const READ_MOST: u64 = 64;

/// A token that lies in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// 32 hexadecimal digits.
    pub token: String,
    /// Where callers find it.
    pub path: PathBuf,
}

impl Store {
    /// Makes a token and puts it where only this user reads it, in the place of an earlier server's.
    ///
    /// # Errors
    /// The operating system's, where there are no random bytes or no state folder can be written.
    pub fn make_token(&self, instance: &str) -> io::Result<Token> {
        let mut bytes = [0; BYTES];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        let token = hex_prefix(&bytes, BYTES);
        let mut refused = None;
        for root in self.state().roots() {
            let path = root.join(NAME);
            match self.write_whole(&path, token.as_bytes(), instance) {
                Ok(()) => return Ok(Token { token, path }),
                Err(error) => {
                    // An earlier server's would be found first.
                    let _ = self.disk().remove(&path);
                    refused = refused.or(Some(error));
                }
            }
        }
        Err(refused.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
    }

    /// The token of this checkout's server, where it wants one.
    #[must_use]
    pub fn token(&self) -> Option<String> {
        self.state().roots().iter().find_map(|root| self.read_token(&root.join(NAME)))
    }

    /// Removes a token's file, unless another server's token is in it by now.
    pub fn forget_token(&self, token: &Token) {
        if self.read_token(&token.path).as_ref() == Some(&token.token) {
            let _ = self.disk().remove(&token.path);
        }
    }

    fn read_token(&self, path: &Path) -> Option<String> {
        let token = String::from_utf8(self.disk().read(path, READ_MOST).ok()?).ok()?;
        (token.len() == 2 * BYTES && token.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(token)
    }
}

#[cfg(test)]
mod tests;
