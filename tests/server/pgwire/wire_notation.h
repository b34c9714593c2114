#pragma once

#include <string>
#include <string_view>
#include <vector>

// Messages of PostgreSQL's protocol as lines for people, and back: "Query select 1",
// "ErrorResponse 42601 syntax error @8", "ReadyForQuery I". Fields are separated by " | ".
namespace sluice::server::pgwire {

// The bytes of one message. Fails the test where the line is none.
std::string MessageOf(std::string_view line);

// What a stream of bytes says, a line for each whole message; `stream` keeps what is left.
// `to_server`: whose messages they are: D is Describe from a client, DataRow from a server.
std::vector<std::string> TakeLines(std::string& stream, bool to_server);

}  // namespace sluice::server::pgwire
