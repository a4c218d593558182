//! The fake OpenStack answers as the real services do: one table of requests, the same status, members and errors.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use capwasm_sim::openstack::{OpenStack, Options};
use capwasm_tests::openstack::{self, Access, Project, contract};

#[tokio::test]
async fn the_real_services_answer_as_they_are_recorded() {
    let Some(admin) = openstack::real("the_real_services_answer_as_they_are_recorded") else { return };
    let project = Project::new(&admin, "contract").await;
    let (answers, failures) = contract::run(&project).await;
    if std::env::var_os("CAPWASM_RECORD_CONTRACT").is_some() {
        contract::record(&answers);
    }
    let left = project.resources().await;
    let differences = contract::compare(&contract::recorded(), &answers);
    assert!(failures.is_empty() && differences.is_empty(), "{}\n{}", failures.join("\n"), differences.join("\n"));
    assert_eq!(left, Vec::<String>::new());
    project.remove().await;
}

#[tokio::test]
async fn the_fake_answers_as_the_real_services_are_recorded() {
    let fake = OpenStack::start(Options::default()).await.unwrap();
    let project = Project::new(&Access::of(&fake.clouds_yaml(), "ost-admin"), "contract").await;
    let (answers, failures) = contract::run(&project).await;
    let differences = contract::compare(&contract::recorded(), &answers);
    assert!(failures.is_empty() && differences.is_empty(), "{}\n{}", failures.join("\n"), differences.join("\n"));
    assert_eq!(project.resources().await, Vec::<String>::new());
    fake.stop().await;
}
