//! `http`: requests to granted origins and named endpoints, through the provider's [`HttpClient`].

use std::result::Result as Answer;
use std::time::Duration;

use capwasm_contract::Refused;
use capwasm_contract::recording::Request;
use wasmtime::Result;
use wasmtime::component::{HasData, Linker, Resource, ResourceTable};

use crate::bindings::{http, types};
use crate::budget::{Budget, Limit};
use crate::http::{HttpClient, HttpRequest, Trust};
use crate::meter::Clocks;
use crate::record::tape::Tape;

/// A guest's client: trust and timeout.
#[derive(Default)]
pub struct GuestClient {
    trust: Trust,
    deadline: Option<Duration>,
    /// Bytes that were charged for it.
    held: usize,
}

pub(crate) struct HttpView<'a> {
    pub(crate) client: &'a HttpClient,
    pub(crate) table: &'a mut ResourceTable,
    pub(crate) clocks: &'a Clocks,
    pub(crate) budget: &'a Budget,
    pub(crate) tape: &'a mut Tape,
}

struct HasHttp;

impl HasData for HasHttp {
    type Data<'a> = HttpView<'a>;
}

pub(crate) fn add_to_linker<T: Send + 'static>(linker: &mut Linker<T>, view: fn(&mut T) -> HttpView<'_>) -> Result<()> {
    http::add_to_linker::<T, HasHttp>(linker, view)
}

impl http::Host for HttpView<'_> {}

impl http::HostClient for HttpView<'_> {
    fn new(&mut self) -> Result<Resource<GuestClient>> {
        Ok(self.table.push(GuestClient::default())?)
    }

    fn trust(&mut self, client: Resource<GuestClient>, pem: String) -> Result<Answer<(), types::CallError>> {
        let client = self.table.get_mut(&client)?;
        // Its PEM is longer than a certificate.
        let added = self
            .budget
            .charge(Limit::Held, pem.len())
            .map_err(Refused::from)
            .and_then(|()| client.trust.add(&pem).inspect_err(|_| self.budget.refund(Limit::Held, pem.len())));
        if added.is_ok() {
            client.held += pem.len();
        }
        Ok(added.map_err(Into::into))
    }

    fn insecure(&mut self, client: Resource<GuestClient>) -> Result<Answer<(), types::CallError>> {
        let allowed = self.tape.ask_now(|| Request::HttpInsecure, || self.client.may_be_insecure())?;
        if allowed.is_ok() {
            self.table.get_mut(&client)?.trust.do_not_verify();
        }
        Ok(allowed.map_err(Into::into))
    }

    fn deadline(&mut self, client: Resource<GuestClient>, ms: u64) -> Result<()> {
        self.table.get_mut(&client)?.deadline = Some(Duration::from_millis(ms));
        Ok(())
    }

    async fn send(
        &mut self,
        client: Resource<GuestClient>,
        method: String,
        url: String,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
    ) -> Result<Answer<http::Response, types::CallError>> {
        let GuestClient { trust, deadline, .. } = self.table.get(&client)?;
        let request = HttpRequest { method, url, headers, body: body.into(), deadline: *deadline };
        let asked = || Request::HttpSend(request.recorded(trust));
        let sent = async {
            self.budget.charge(Limit::Requests, 1_u32)?;
            // An endpoint with a limit of its own (an image pull) is waited for on that limit, not on the call's.
            let _held = self.client.has_own_limit(&request.url).then(|| self.clocks.wall.hold());
            self.clocks.cpu.outside(self.client.send(request.clone(), trust)).await
        };
        Ok(self.tape.ask(asked, sent).await?.map(Into::into).map_err(Into::into))
    }

    async fn recent(
        &mut self,
        client: Resource<GuestClient>,
        method: String,
        url: String,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
        max_age_ms: u64,
    ) -> Result<Answer<http::Response, types::CallError>> {
        let GuestClient { trust, deadline, .. } = self.table.get(&client)?;
        let max_age = Duration::from_millis(max_age_ms);
        let request = HttpRequest { method, url, headers, body: body.into(), deadline: *deadline };
        let asked = || Request::HttpRecent { request: request.recorded(trust), max_age_ms };
        let sent = async {
            // No request, so it does not count as one.
            if let Some(answer) = self.client.recent(&request, trust, max_age) {
                return Ok(answer);
            }
            self.budget.charge(Limit::Requests, 1_u32)?;
            let _held = self.client.has_own_limit(&request.url).then(|| self.clocks.wall.hold());
            self.clocks.cpu.outside(self.client.send_and_keep(request.clone(), trust, max_age)).await
        };
        Ok(self.tape.ask(asked, sent).await?.map(Into::into).map_err(Into::into))
    }

    fn drop(&mut self, client: Resource<GuestClient>) -> Result<()> {
        self.budget.refund(Limit::Held, self.table.delete(client)?.held);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use crate::bindings::http::HostClient;
    use crate::limits::Limits;
    use crate::meter::{CpuMeter, WallClock};

    #[test]
    fn what_all_clients_of_a_call_trust_is_bounded_in_bytes_together() {
        let certificate = rcgen::generate_simple_self_signed(vec!["ca".to_owned()]).unwrap().cert.pem();
        let three_mib = format!("{certificate}{}", "#\n".repeat(3 << 19));
        let clocks = Clocks { cpu: CpuMeter::new(Duration::ZERO), wall: WallClock::start(Duration::ZERO) };
        let (client, budget, mut table) = (HttpClient::denied(), Budget::new(&Limits::default()), ResourceTable::new());
        let mut view =
            HttpView { client: &client, table: &mut table, clocks: &clocks, budget: &budget, tape: &mut Tape::Off };
        let mut trust = |pem: &str| {
            let client = view.new().unwrap();
            let number = client.rep();
            (view.trust(client, pem.to_owned()).unwrap(), Resource::new_own(number))
        };
        let clients: Vec<_> = (0..5).map(|_| trust(&three_mib)).collect();
        assert!(clients.iter().all(|(trusted, _)| trusted.is_ok()));
        let (refused, _) = trust(&three_mib);
        assert_eq!(refused.unwrap_err().reason, "HandlesTooLarge");
        let (refused, _) = trust(&"#\n".repeat(1 << 9));
        assert_eq!(refused.unwrap_err().reason, "BadCertificate");
        let used = budget.used(Limit::Held);
        assert_eq!(used, 5 * three_mib.len() as u64, "what was refused holds nothing");
        for (_, client) in clients {
            HostClient::drop(&mut view, client).unwrap();
        }
        assert_eq!(budget.used(Limit::Held), 0);
    }
}
