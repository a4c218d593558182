//! A cloud in which one service answers as none should, as a cluster meets it.
use super::*;
use crate::testing::hostile::behaviours;

#[test]
fn a_pass_ends_after_a_bounded_number_of_requests_and_its_condition_names_the_service_and_its_host() {
    for behaviour in behaviours() {
        for (service, root) in [("Neutron", "/networking/"), ("Octavia", "/load-balancer/")] {
            let mut world = World::new(full());
            let (host, count) = behaviour.behind(world.host, &world.cloud, root);
            world.host = host;
            let told = (0..MOST_PASSES).find_map(|_| {
                let pass = world.pass(|_| false);
                (count.get() > 0).then_some(pass)
            });
            let pass = told.flatten().unwrap_or_else(|| panic!("{service}, {}", behaviour.name));
            behaviour.check(service, &pass.result.unwrap_err(), count.get());
            let conditions = world.object.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
            let mut messages = conditions.map(|condition| object::text(condition, "/message"));
            assert!(messages.any(|message| message.contains("cloud.test")), "{service}, {}", behaviour.name);
        }
    }
}
