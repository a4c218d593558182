//! Kubeconfigs that stand in a Secret: refused without quoting them, or a configuration that names nothing of this machine.

use std::sync::LazyLock;

use capwasm_remote::kubeconfig::{KubeconfigError, read};
use tokio::runtime::{Builder, Runtime};

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Builder::new_current_thread().enable_all().build().unwrap());

pub fn run(data: &[u8]) {
    match RUNTIME.block_on(read(data)) {
        Ok(config) => {
            assert!(config.proxy_url.is_none(), "it goes through a proxy");
            let user = config.auth_info;
            assert!(user.exec.is_none() && user.auth_provider.is_none(), "it runs a program");
            assert!(
                user.token_file.is_none() && user.client_certificate.is_none() && user.client_key.is_none(),
                "it reads a file"
            );
        }
        Err(KubeconfigError::Unparsed) => {}
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
