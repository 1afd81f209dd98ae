//! The command `majordomus`.

fn main() -> std::process::ExitCode {
    majordomus_cli::run(std::env::args_os())
}
