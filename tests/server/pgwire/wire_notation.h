#pragma once

#include <string>
#include <string_view>
#include <vector>

// Converts messages of PostgreSQL's protocol to readable lines and back: "Query select 1",
// "ErrorResponse 42601 syntax error @8", "ReadyForQuery I". Fields are separated by " | ".
namespace sluice::server::pgwire {

// The bytes of one message. Fails the test if the line is malformed.
std::string MessageOf(std::string_view line);

// One line for each whole message in a stream of bytes; `stream` keeps the rest. `to_server`: the
// direction: D is Describe from a client, DataRow from a server.
std::vector<std::string> TakeLines(std::string& stream, bool to_server);

}  // namespace sluice::server::pgwire
