//! Every message that is sent fits the schema of its revision, as the protocol has published it.

use majordomus_e2e::{Client, Request, Schema, Session, World, modern};
use serde_json::{Value, json};

/// What is asked in every revision, and as what it is answered.
fn questions() -> Vec<(&'static str, Value, Option<&'static str>)> {
    let resume = json!({ "type": "ref/prompt", "name": "resume" });
    let tool = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    let fill = |name: &str| json!({ "ref": resume, "argument": { "name": name, "value": "" } });
    vec![
        ("tools/list", json!({}), Some("ListToolsResult")),
        ("tools/call", tool("majordomus_episodes", json!({})), Some("CallToolResult")),
        ("tools/call", tool("majordomus_session_attach", json!({ "external_id": "a" })), Some("CallToolResult")),
        ("tools/call", tool("majordomus_peers", json!({})), Some("CallToolResult")),
        ("tools/call", tool("majordomus_session_records", json!({})), Some("CallToolResult")),
        ("tools/call", tool("majordomus_session_attach", json!({ "nope": 1 })), Some("CallToolResult")),
        ("tools/call", json!({ "name": "nope" }), None),
        ("resources/list", json!({}), Some("ListResourcesResult")),
        ("resources/templates/list", json!({}), Some("ListResourceTemplatesResult")),
        ("resources/read", json!({ "uri": "majordomus://guide" }), Some("ReadResourceResult")),
        ("resources/read", json!({ "uri": "majordomus://reference" }), Some("ReadResourceResult")),
        ("resources/read", json!({ "uri": "majordomus://episodes" }), Some("ReadResourceResult")),
        ("resources/read", json!({ "uri": "majordomus://sessions" }), Some("ReadResourceResult")),
        ("resources/read", json!({ "uri": "majordomus://nothing" }), None),
        ("prompts/list", json!({}), Some("ListPromptsResult")),
        ("prompts/get", json!({ "name": "attach" }), Some("GetPromptResult")),
        ("prompts/get", json!({ "name": "resume", "arguments": { "external_id": "a" } }), Some("GetPromptResult")),
        ("prompts/get", json!({ "name": "resume" }), None),
        ("completion/complete", fill("external_id"), Some("CompleteResult")),
        ("completion/complete", fill("nope"), None),
        ("no/such", json!({}), None),
    ]
}

const EPISODES: &str = "majordomus://episodes";

#[test]
fn every_answer_in_a_session_fits_the_schema_of_its_revision() {
    let world = World::new();
    let server = world.serve(&[]);
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let schema = Schema::of(revision);
        let mut client: Client = world.server(&["mcp"]);
        let about = json!({ "name": "t", "version": "1" });
        let about = json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": about });
        let begun = client.ask("initialize", &about);
        assert_eq!(begun["result"]["protocolVersion"], revision);
        schema.answers(&begun, Some("InitializeResult"));
        let mut session = Session::begin(server.address(), revision);
        for (method, params, result) in questions() {
            schema.answers(&client.ask(method, &params), result);
            schema.answers(&session.ask(method, &params), result);
        }
        schema.answers(&client.ask("ping", &json!({})), Some("EmptyResult"));
        let uri = json!({ "uri": EPISODES });
        schema.answers(&client.ask("resources/subscribe", &uri), Some("EmptyResult"));
        let mut other = world.client();
        other.attach("another");
        schema.fits("ResourceUpdatedNotification", &client.receive());
        schema.answers(&client.ask("resources/unsubscribe", &uri), Some("EmptyResult"));
        other.detach();
        assert_eq!(session.delete().status, 204);
    }
}

#[test]
fn every_answer_to_a_request_that_is_complete_in_itself_fits_its_schema() {
    let world = World::new();
    let server = world.serve(&[]);
    let schema = Schema::of("2026-07-28");
    let mut client = world.server(&["mcp"]);
    let mut connection = server.connect();
    let mut all = questions();
    all.push(("server/discover", json!({}), Some("DiscoverResult")));
    for (method, params, result) in all {
        schema.answers(&client.modern(method, &params), result);
        schema.answers(&connection.ask(&Request::modern(&modern(1, method, &params))).json(), result);
    }
    let mut unsupported = modern(1, "tools/list", &json!({}));
    unsupported["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    client.send(&unsupported);
    schema.fits("UnsupportedProtocolVersionError", &client.receive());
    let mismatch = Request::modern(&modern(1, "tools/list", &json!({}))).without("Mcp-Method");
    schema.fits("HeaderMismatchError", &connection.ask(&mismatch).json());
    let wanted = json!({ "notifications": { "resourceSubscriptions": [EPISODES] } });
    client.send(&modern("s", "subscriptions/listen", &wanted));
    schema.fits("SubscriptionsAcknowledgedNotification", &client.receive());
    client.modern_attach("another");
    schema.fits("ResourceUpdatedNotification", &client.receive());
    client.close_input();
    schema.answers(&client.receive(), Some("SubscriptionsListenResult"));
}
