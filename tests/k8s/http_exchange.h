#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The server's side of HTTP/1.1 on a connection, as far as the fake API server needs it.
namespace sluice::k8s {

struct HttpRequest {
  std::string method;
  std::vector<std::string> path;             // its parts
  std::map<std::string, std::string> query;  // decoded
  std::string token;                         // of the Authorization header
  std::string body;
};

// The next request; `buffer` keeps what has been received of later ones. nullopt: the connection
// has ended.
std::optional<HttpRequest> ReceiveRequest(int socket, std::string& buffer);

// False: the connection has ended.
bool SendBytes(int socket, std::string_view bytes);

// An answer with this JSON; each of `headers` ends with a line's end.
std::string HttpAnswer(int code, std::string_view body, std::string_view headers = "");

}  // namespace sluice::k8s
