//! The fake OpenStack answers as the real services do: one table of requests, the same status, members and errors.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::io::Write;

use capwasm_sim_openstack::{OpenStack, Options};
use capwasm_tests::openstack::{self, Access, Project, contract};

#[tokio::test]
async fn the_real_services_answer_as_they_are_recorded() {
    let Some(admin) = openstack::real("the_real_services_answer_as_they_are_recorded") else { return };
    let project = Project::new(&admin, "contract").await;
    let (answers, failures) = contract::run(&project).await;
    // What failed is not an answer to hold anything against.
    if std::env::var_os("CAPWASM_RECORD_CONTRACT").is_some() && failures.is_empty() {
        contract::record(&answers);
    }
    let left = project.resources().await;
    let compared = contract::compare(&contract::recorded(), &answers);
    assert_same(&failures, &compared.differences);
    assert_eq!(compared.known, Vec::<String>::new(), "what is known differs in the fake alone");
    assert_eq!(left, Vec::<String>::new());
    project.remove().await;
}

#[tokio::test]
async fn the_fake_answers_as_the_real_services_are_recorded() {
    let fake = OpenStack::start(Options::default()).await.unwrap();
    let project = Project::new(&Access::of(&fake.clouds_yaml(), "ost-admin"), "contract").await;
    let (answers, failures) = contract::run(&project).await;
    let compared = contract::compare(&contract::recorded(), &answers);
    tell(&compared.known);
    assert_same(&failures, &compared.differences);
    assert_eq!(compared.known.len(), contract::KNOWN.len(), "a difference that is not there any more is still listed");
    assert_eq!(project.resources().await, Vec::<String>::new());
    fake.stop().await;
}

fn assert_same(failures: &[String], differences: &[String]) {
    assert!(failures.is_empty() && differences.is_empty(), "{}\n{}", failures.join("\n"), differences.join("\n"));
}

/// Past libtest, which would swallow it.
fn tell(known: &[String]) {
    let mut out = std::io::stderr();
    for difference in known {
        writeln!(out, "KNOWN DIFFERENCE: {difference}").unwrap();
    }
}
