# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_majordomus_global_optspecs
    string join \n h/help V/version
end

function __fish_majordomus_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_majordomus_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_majordomus_using_subcommand
    set -l cmd (__fish_majordomus_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c majordomus -n "__fish_majordomus_needs_command" -s h -l help -d 'Print help'
complete -c majordomus -n "__fish_majordomus_needs_command" -s V -l version -d 'Print version'
complete -c majordomus -n "__fish_majordomus_needs_command" -f -a "mcp" -d 'Serve one client over stdio; its connection draws the boundary of its episode'
complete -c majordomus -n "__fish_majordomus_needs_command" -f -a "capture" -d 'Record what a provider\'s hooks report, and show what is recorded how'
complete -c majordomus -n "__fish_majordomus_needs_command" -f -a "serve" -d 'Serve this checkout over HTTP, until it is stopped; or see to the server that runs for it'
complete -c majordomus -n "__fish_majordomus_needs_command" -f -a "sessions" -d 'Read the session records of this repository'
complete -c majordomus -n "__fish_majordomus_needs_command" -f -a "episodes" -d 'List the episodes that are open in this checkout'
complete -c majordomus -n "__fish_majordomus_needs_command" -f -a "connect" -d 'Declare the hooks and the MCP server in the settings of clients, or take exactly that out again'
complete -c majordomus -n "__fish_majordomus_needs_command" -f -a "doctor" -d 'Check that everything needed to record is in place here'
complete -c majordomus -n "__fish_majordomus_needs_command" -f -a "demo" -d 'Show the whole lifecycle with real processes in a throwaway repository'
complete -c majordomus -n "__fish_majordomus_needs_command" -f -a "generate" -d 'Write the reference pages, the OpenAPI document, the manual pages and the completions'
complete -c majordomus -n "__fish_majordomus_needs_command" -f -a "peers" -d 'Who is connected here'
complete -c majordomus -n "__fish_majordomus_needs_command" -f -a "capabilities" -d 'What can be called'
complete -c majordomus -n "__fish_majordomus_needs_command" -f -a "server" -d 'How the server of this checkout stands'
complete -c majordomus -n "__fish_majordomus_needs_command" -f -a "announce" -d 'Tell the others what you are doing'
complete -c majordomus -n "__fish_majordomus_using_subcommand mcp" -l http-port -d 'The port at which the server of this checkout also answers over HTTP, beside stdio; where it is taken, a free one [default: 8741]' -r
complete -c majordomus -n "__fish_majordomus_using_subcommand mcp" -l allow-host -d 'Hosts under which a proxy forwards to this server, such as tools.example.com [or MAJORDOMUS_ALLOWED_HOSTS, separated by commas]' -r
complete -c majordomus -n "__fish_majordomus_using_subcommand mcp" -l allow-origin -d 'Origins whose pages may call this server, such as https://tools.example.com [or MAJORDOMUS_ALLOWED_ORIGINS, separated by commas]' -r
complete -c majordomus -n "__fish_majordomus_using_subcommand mcp" -l grace-seconds -d 'How long an episode waits for its client after the connection was lost [default: 900; or MAJORDOMUS_GRACE_SECONDS]' -r
complete -c majordomus -n "__fish_majordomus_using_subcommand mcp" -l idle-seconds -d 'How long an episode of hooks waits for their next event [default: what the provider declares; or MAJORDOMUS_IDLE_SECONDS]' -r
complete -c majordomus -n "__fish_majordomus_using_subcommand mcp" -l standalone -d 'Serve this client by itself: share no server with other clients of this checkout, and answer over HTTP only where --http-port is given'
complete -c majordomus -n "__fish_majordomus_using_subcommand mcp" -s h -l help -d 'Print help'
complete -c majordomus -n "__fish_majordomus_using_subcommand capture; and not __fish_seen_subcommand_from session status" -s h -l help -d 'Print help'
complete -c majordomus -n "__fish_majordomus_using_subcommand capture; and not __fish_seen_subcommand_from session status" -f -a "session" -d 'Record one event; the payload is one JSON object on standard input. What a provider\'s hook runs'
complete -c majordomus -n "__fish_majordomus_using_subcommand capture; and not __fish_seen_subcommand_from session status" -f -a "status" -d 'Show for each provider what is recorded, and whether that has been seen to work'
complete -c majordomus -n "__fish_majordomus_using_subcommand capture; and __fish_seen_subcommand_from session" -l provider -d 'Whose event it is' -r
complete -c majordomus -n "__fish_majordomus_using_subcommand capture; and __fish_seen_subcommand_from session" -l event -d 'Which event' -r -f -a "start\t''
end\t''
compact\t''
activity\t''"
complete -c majordomus -n "__fish_majordomus_using_subcommand capture; and __fish_seen_subcommand_from session" -l grace-seconds -d 'How long an episode waits for its client after the connection was lost [default: 900; or MAJORDOMUS_GRACE_SECONDS]' -r
complete -c majordomus -n "__fish_majordomus_using_subcommand capture; and __fish_seen_subcommand_from session" -l idle-seconds -d 'How long an episode of hooks waits for their next event [default: what the provider declares; or MAJORDOMUS_IDLE_SECONDS]' -r
complete -c majordomus -n "__fish_majordomus_using_subcommand capture; and __fish_seen_subcommand_from session" -s h -l help -d 'Print help'
complete -c majordomus -n "__fish_majordomus_using_subcommand capture; and __fish_seen_subcommand_from status" -l grace-seconds -d 'How long an episode waits for its client after the connection was lost [default: 900; or MAJORDOMUS_GRACE_SECONDS]' -r
complete -c majordomus -n "__fish_majordomus_using_subcommand capture; and __fish_seen_subcommand_from status" -l idle-seconds -d 'How long an episode of hooks waits for their next event [default: what the provider declares; or MAJORDOMUS_IDLE_SECONDS]' -r
complete -c majordomus -n "__fish_majordomus_using_subcommand capture; and __fish_seen_subcommand_from status" -l json -d 'Print JSON instead of text'
complete -c majordomus -n "__fish_majordomus_using_subcommand capture; and __fish_seen_subcommand_from status" -s h -l help -d 'Print help'
complete -c majordomus -n "__fish_majordomus_using_subcommand serve; and not __fish_seen_subcommand_from status ensure stop" -l host -d 'The loopback address to answer at, or `localhost` for both [default: both]' -r
complete -c majordomus -n "__fish_majordomus_using_subcommand serve; and not __fish_seen_subcommand_from status ensure stop" -l port -d 'The port to answer at; one that is taken is an error, and 0 is any free one [default: 8741, or a free one where that is taken]' -r
complete -c majordomus -n "__fish_majordomus_using_subcommand serve; and not __fish_seen_subcommand_from status ensure stop" -l allow-host -d 'Hosts under which a proxy forwards to this server, such as tools.example.com [or MAJORDOMUS_ALLOWED_HOSTS, separated by commas]' -r
complete -c majordomus -n "__fish_majordomus_using_subcommand serve; and not __fish_seen_subcommand_from status ensure stop" -l allow-origin -d 'Origins whose pages may call this server, such as https://tools.example.com [or MAJORDOMUS_ALLOWED_ORIGINS, separated by commas]' -r
complete -c majordomus -n "__fish_majordomus_using_subcommand serve; and not __fish_seen_subcommand_from status ensure stop" -l grace-seconds -d 'How long an episode waits for its client after the connection was lost [default: 900; or MAJORDOMUS_GRACE_SECONDS]' -r
complete -c majordomus -n "__fish_majordomus_using_subcommand serve; and not __fish_seen_subcommand_from status ensure stop" -l idle-seconds -d 'How long an episode of hooks waits for their next event [default: what the provider declares; or MAJORDOMUS_IDLE_SECONDS]' -r
complete -c majordomus -n "__fish_majordomus_using_subcommand serve; and not __fish_seen_subcommand_from status ensure stop" -l detached -d 'Run in a session of its own, and end where another process is the server of this checkout already'
complete -c majordomus -n "__fish_majordomus_using_subcommand serve; and not __fish_seen_subcommand_from status ensure stop" -l take-over -d 'Go on where the server has left that started this process, until nobody is left whom it served'
complete -c majordomus -n "__fish_majordomus_using_subcommand serve; and not __fish_seen_subcommand_from status ensure stop" -s h -l help -d 'Print help'
complete -c majordomus -n "__fish_majordomus_using_subcommand serve; and not __fish_seen_subcommand_from status ensure stop" -f -a "status" -d 'Tell how the server of this checkout stands'
complete -c majordomus -n "__fish_majordomus_using_subcommand serve; and not __fish_seen_subcommand_from status ensure stop" -f -a "ensure" -d 'Start a server for this checkout in the background, unless one answers already, and tell how it stands'
complete -c majordomus -n "__fish_majordomus_using_subcommand serve; and not __fish_seen_subcommand_from status ensure stop" -f -a "stop" -d 'End the server of this checkout, and all episodes of its connections with it'
complete -c majordomus -n "__fish_majordomus_using_subcommand serve; and __fish_seen_subcommand_from status" -l json -d 'Print JSON instead of text'
complete -c majordomus -n "__fish_majordomus_using_subcommand serve; and __fish_seen_subcommand_from status" -s h -l help -d 'Print help'
complete -c majordomus -n "__fish_majordomus_using_subcommand serve; and __fish_seen_subcommand_from ensure" -l json -d 'Print JSON instead of text'
complete -c majordomus -n "__fish_majordomus_using_subcommand serve; and __fish_seen_subcommand_from ensure" -s h -l help -d 'Print help'
complete -c majordomus -n "__fish_majordomus_using_subcommand serve; and __fish_seen_subcommand_from stop" -l json -d 'Print JSON instead of text'
complete -c majordomus -n "__fish_majordomus_using_subcommand serve; and __fish_seen_subcommand_from stop" -s h -l help -d 'Print help'
complete -c majordomus -n "__fish_majordomus_using_subcommand sessions; and not __fish_seen_subcommand_from list show" -s h -l help -d 'Print help'
complete -c majordomus -n "__fish_majordomus_using_subcommand sessions; and not __fish_seen_subcommand_from list show" -f -a "list" -d 'List the records, newest first'
complete -c majordomus -n "__fish_majordomus_using_subcommand sessions; and not __fish_seen_subcommand_from list show" -f -a "show" -d 'Print one record'
complete -c majordomus -n "__fish_majordomus_using_subcommand sessions; and __fish_seen_subcommand_from list" -l limit -d 'How many to show' -r
complete -c majordomus -n "__fish_majordomus_using_subcommand sessions; and __fish_seen_subcommand_from list" -l after -d 'Show those that began before this session' -r
complete -c majordomus -n "__fish_majordomus_using_subcommand sessions; and __fish_seen_subcommand_from list" -l grace-seconds -d 'How long an episode waits for its client after the connection was lost [default: 900; or MAJORDOMUS_GRACE_SECONDS]' -r
complete -c majordomus -n "__fish_majordomus_using_subcommand sessions; and __fish_seen_subcommand_from list" -l idle-seconds -d 'How long an episode of hooks waits for their next event [default: what the provider declares; or MAJORDOMUS_IDLE_SECONDS]' -r
complete -c majordomus -n "__fish_majordomus_using_subcommand sessions; and __fish_seen_subcommand_from list" -l json -d 'Print JSON instead of text'
complete -c majordomus -n "__fish_majordomus_using_subcommand sessions; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c majordomus -n "__fish_majordomus_using_subcommand sessions; and __fish_seen_subcommand_from show" -l grace-seconds -d 'How long an episode waits for its client after the connection was lost [default: 900; or MAJORDOMUS_GRACE_SECONDS]' -r
complete -c majordomus -n "__fish_majordomus_using_subcommand sessions; and __fish_seen_subcommand_from show" -l idle-seconds -d 'How long an episode of hooks waits for their next event [default: what the provider declares; or MAJORDOMUS_IDLE_SECONDS]' -r
complete -c majordomus -n "__fish_majordomus_using_subcommand sessions; and __fish_seen_subcommand_from show" -l json -d 'Print JSON instead of text'
complete -c majordomus -n "__fish_majordomus_using_subcommand sessions; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c majordomus -n "__fish_majordomus_using_subcommand episodes; and not __fish_seen_subcommand_from attach detach close" -l grace-seconds -d 'How long an episode waits for its client after the connection was lost [default: 900; or MAJORDOMUS_GRACE_SECONDS]' -r
complete -c majordomus -n "__fish_majordomus_using_subcommand episodes; and not __fish_seen_subcommand_from attach detach close" -l idle-seconds -d 'How long an episode of hooks waits for their next event [default: what the provider declares; or MAJORDOMUS_IDLE_SECONDS]' -r
complete -c majordomus -n "__fish_majordomus_using_subcommand episodes; and not __fish_seen_subcommand_from attach detach close" -l json -d 'Print JSON instead of text'
complete -c majordomus -n "__fish_majordomus_using_subcommand episodes; and not __fish_seen_subcommand_from attach detach close" -s h -l help -d 'Print help'
complete -c majordomus -n "__fish_majordomus_using_subcommand episodes; and not __fish_seen_subcommand_from attach detach close" -f -a "attach" -d 'Start or resume this session\'s record'
complete -c majordomus -n "__fish_majordomus_using_subcommand episodes; and not __fish_seen_subcommand_from attach detach close" -f -a "detach" -d 'Finish this session\'s record'
complete -c majordomus -n "__fish_majordomus_using_subcommand episodes; and not __fish_seen_subcommand_from attach detach close" -f -a "close" -d 'End an episode, whoever holds it'
complete -c majordomus -n "__fish_majordomus_using_subcommand episodes; and __fish_seen_subcommand_from attach" -l episode-handle -d 'What an earlier attach gave to a caller without a connection; leave it out otherwise [or MAJORDOMUS_EPISODE_HANDLE, which others on this machine cannot see]' -r
complete -c majordomus -n "__fish_majordomus_using_subcommand episodes; and __fish_seen_subcommand_from attach" -l json -d 'Print JSON instead of text'
complete -c majordomus -n "__fish_majordomus_using_subcommand episodes; and __fish_seen_subcommand_from attach" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c majordomus -n "__fish_majordomus_using_subcommand episodes; and __fish_seen_subcommand_from detach" -l external-id -d 'Which episode; without it, the one that the caller holds' -r
complete -c majordomus -n "__fish_majordomus_using_subcommand episodes; and __fish_seen_subcommand_from detach" -l episode-handle -d 'What attach gave to a caller without a connection; leave it out otherwise [or MAJORDOMUS_EPISODE_HANDLE, which others on this machine cannot see]' -r
complete -c majordomus -n "__fish_majordomus_using_subcommand episodes; and __fish_seen_subcommand_from detach" -l json -d 'Print JSON instead of text'
complete -c majordomus -n "__fish_majordomus_using_subcommand episodes; and __fish_seen_subcommand_from detach" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c majordomus -n "__fish_majordomus_using_subcommand episodes; and __fish_seen_subcommand_from close" -l provider -d 'Who drew its boundary; needed only where several have one of that id' -r
complete -c majordomus -n "__fish_majordomus_using_subcommand episodes; and __fish_seen_subcommand_from close" -l json -d 'Print JSON instead of text'
complete -c majordomus -n "__fish_majordomus_using_subcommand episodes; and __fish_seen_subcommand_from close" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c majordomus -n "__fish_majordomus_using_subcommand connect" -l global -d 'Change the settings of the person, for all projects, instead of this project\'s'
complete -c majordomus -n "__fish_majordomus_using_subcommand connect" -l dry-run -d 'Show what would change, and write nothing'
complete -c majordomus -n "__fish_majordomus_using_subcommand connect" -l check -d 'Write nothing; tell what is there, and fail where something is missing or stale'
complete -c majordomus -n "__fish_majordomus_using_subcommand connect" -l remove -d 'Take out what was put in, and nothing else'
complete -c majordomus -n "__fish_majordomus_using_subcommand connect" -l json -d 'Print what --check finds as JSON'
complete -c majordomus -n "__fish_majordomus_using_subcommand connect" -s h -l help -d 'Print help'
complete -c majordomus -n "__fish_majordomus_using_subcommand doctor" -l grace-seconds -d 'How long an episode waits for its client after the connection was lost [default: 900; or MAJORDOMUS_GRACE_SECONDS]' -r
complete -c majordomus -n "__fish_majordomus_using_subcommand doctor" -l idle-seconds -d 'How long an episode of hooks waits for their next event [default: what the provider declares; or MAJORDOMUS_IDLE_SECONDS]' -r
complete -c majordomus -n "__fish_majordomus_using_subcommand doctor" -l json -d 'Print JSON instead of text'
complete -c majordomus -n "__fish_majordomus_using_subcommand doctor" -s h -l help -d 'Print help'
complete -c majordomus -n "__fish_majordomus_using_subcommand demo" -s h -l help -d 'Print help'
complete -c majordomus -n "__fish_majordomus_using_subcommand generate" -l dir -d 'The folder to write to [default: docs/reference below the current folder, which has to be there]' -r -F
complete -c majordomus -n "__fish_majordomus_using_subcommand generate" -l check -d 'Write nothing; fail where a file is stale, missing or left over'
complete -c majordomus -n "__fish_majordomus_using_subcommand generate" -s h -l help -d 'Print help'
complete -c majordomus -n "__fish_majordomus_using_subcommand peers" -l limit -d 'How many at most; 50 when absent' -r
complete -c majordomus -n "__fish_majordomus_using_subcommand peers" -l cursor -d '`next_cursor` of the page before, as it came' -r
complete -c majordomus -n "__fish_majordomus_using_subcommand peers" -l episode-handle -d 'What attach gave to a caller without a connection, to be shown which one it is; leave it out otherwise [or MAJORDOMUS_EPISODE_HANDLE, which others on this machine cannot see]' -r
complete -c majordomus -n "__fish_majordomus_using_subcommand peers" -l json -d 'Print JSON instead of text'
complete -c majordomus -n "__fish_majordomus_using_subcommand peers" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c majordomus -n "__fish_majordomus_using_subcommand capabilities; and not __fish_seen_subcommand_from describe" -l json -d 'Print JSON instead of text'
complete -c majordomus -n "__fish_majordomus_using_subcommand capabilities; and not __fish_seen_subcommand_from describe" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c majordomus -n "__fish_majordomus_using_subcommand capabilities; and not __fish_seen_subcommand_from describe" -f -a "describe" -d 'What one capability takes and gives'
complete -c majordomus -n "__fish_majordomus_using_subcommand capabilities; and __fish_seen_subcommand_from describe" -l json -d 'Print JSON instead of text'
complete -c majordomus -n "__fish_majordomus_using_subcommand capabilities; and __fish_seen_subcommand_from describe" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c majordomus -n "__fish_majordomus_using_subcommand server; and not __fish_seen_subcommand_from status" -s h -l help -d 'Print help'
complete -c majordomus -n "__fish_majordomus_using_subcommand server; and not __fish_seen_subcommand_from status" -f -a "status" -d 'How the server of this checkout stands'
complete -c majordomus -n "__fish_majordomus_using_subcommand server; and __fish_seen_subcommand_from status" -l json -d 'Print JSON instead of text'
complete -c majordomus -n "__fish_majordomus_using_subcommand server; and __fish_seen_subcommand_from status" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c majordomus -n "__fish_majordomus_using_subcommand announce" -l scope -d 'The paths that you are about to change, relative to the repository\'s root' -r
complete -c majordomus -n "__fish_majordomus_using_subcommand announce" -l episode-handle -d 'What attach gave to a caller without a connection; leave it out otherwise [or MAJORDOMUS_EPISODE_HANDLE, which others on this machine cannot see]' -r
complete -c majordomus -n "__fish_majordomus_using_subcommand announce" -l json -d 'Print JSON instead of text'
complete -c majordomus -n "__fish_majordomus_using_subcommand announce" -s h -l help -d 'Print help (see more with \'--help\')'
