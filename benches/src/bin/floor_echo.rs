//! The floor of a stdio server: a bare tokio program that writes back every line it reads.

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

fn main() -> std::io::Result<()> {
    tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
        let mut input = BufReader::new(tokio::io::stdin());
        let mut output = tokio::io::stdout();
        let mut line = Vec::new();
        while input.read_until(b'\n', &mut line).await? > 0 {
            output.write_all(&line).await?;
            output.flush().await?;
            line.clear();
        }
        Ok(())
    })
}
