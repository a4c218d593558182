//! The compiler's process from its parent's side: whatever it does, the answer is an error that says what happened.

use std::time::Duration;

use capwasm_runtime::{ChildProcess, CompileError, CompileLimits, Compiler, InProcess};

fn limits() -> CompileLimits {
    CompileLimits { wall: Duration::from_secs(20), ..CompileLimits::default() }
}

async fn child(script: &str, limits: CompileLimits) -> CompileError {
    ChildProcess::program("/bin/sh", ["-c", script], limits).compile(b"component").await.unwrap_err()
}

#[tokio::test]
async fn every_end_of_a_compiler_is_told() {
    let rows = [
        ("echo 'no good' >&2; exit 2", CompileError::Invalid("no good".into())),
        ("kill -XCPU $$", CompileError::Limit("120 s of CPU time".into())),
        (
            "echo 'memory allocation of 9 bytes failed' >&2; kill -ABRT $$",
            CompileError::Limit("2147483648 bytes of memory".into()),
        ),
        ("cat >/dev/null", CompileError::Failed("the compiler is of another build than this process".into())),
        (
            "printf 0123456789abcdefcode",
            CompileError::Failed("the compiler is of another build than this process".into()),
        ),
    ];
    for (script, expected) in rows {
        assert_eq!(child(script, limits()).await, expected, "{script}");
    }
    let failed = child("echo 'oh' >&2; exit 7", limits()).await;
    assert!(matches!(&failed, CompileError::Failed(why) if why.contains("oh") && why.contains('7')), "{failed:?}");
    let nobody = ChildProcess::program("/nonexistent", [""; 0], limits()).compile(b"").await;
    assert!(matches!(nobody, Err(CompileError::Failed(_))), "{nobody:?}");
}

#[tokio::test]
async fn a_compiler_that_does_not_end_or_writes_without_end_is_stopped() {
    let short = CompileLimits { wall: Duration::from_millis(200), ..limits() };
    assert_eq!(child("exec sleep 3600", short).await, CompileError::Limit("200ms".into()));
    let little = CompileLimits { code_bytes: 1 << 16, ..limits() };
    assert_eq!(child("exec cat /dev/zero", little).await, CompileError::Limit("65536 bytes of code".into()));
}

#[tokio::test]
async fn in_process_says_what_is_not_valid_too() {
    assert!(matches!(InProcess.compile(b"nonsense").await, Err(CompileError::Invalid(_))));
}
