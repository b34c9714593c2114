#pragma once

#include <atomic>
#include <condition_variable>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/k8s/fake_api_store.h"

namespace sluice::k8s {

// An API server in this process: HTTP/1.1 on a loopback port, a thread for each connection, and all
// the failures that a client has to cope with. Thread-safe.
class FakeApiServer {
 public:
  enum class Trouble {
    kTooManyRequests,  // 429, Retry-After 7
    kServerError,      // 500
    kLoseAnswer,       // does it, then closes the connection
    kKeepAnswer,       // does it and never answers
    kCloseBefore,      // does nothing and closes the connection
    kSayNothing,       // reads the request and never answers
    kEndlessAnswer,    // a body without an end
    kDamagedAnswer,    // 200, and truncated JSON
    kNoHttp,           // an answer that is not HTTP
    kGone,             // 410 instead of an answer
    kGoneEvent,        // of a watch: 200, then an ERROR event of 410
    kErrorEvent,       // of a watch: 200, then an ERROR event of 500
    kVersionTooLarge,  // 504 Too large resource version
    kBrokenStream,     // of a watch: 200, half an event, the connection closed
    kEndedStream,      // of a watch: 200, then a regular end
    kDamagedEvent,     // of a watch: a malformed event
    kSilentStream,     // of a watch: 200, then nothing, whatever happens
    kStaleList,        // of a list: an old, empty state
    kForbidden,        // 403
    kUnauthorized,     // 401
  };

  FakeApiServer();
  ~FakeApiServer();

  std::string url() const;
  int port() const { return port_; }

  // The next `times` requests with that verb ("list") and resource get this failure.
  void Make(Trouble trouble, const std::string& verb, const std::string& resource, int times = 1);
  // Accepts only this token, and "powerless", which has no rights.
  void Demand(const std::string& token);
  void Compact();
  int64_t version() const;
  // On every open stream; `twice`: repeat the events before it.
  void SendBookmarks();
  void SendEverythingAgain();
  void EndStreams();
  // Reads on, and answers nothing any more, on the connections that are open now.
  void FallSilent();
  // Streams send their bytes in parts of this size.
  void CutStreams(size_t bytes);

  // Number of such requests, including failed ones.
  int Asked(const std::string& verb, const std::string& resource) const;
  // Waits until it has received this many; the test's time limit ends a wait in vain.
  void WaitUntilAsked(const std::string& verb, const std::string& resource, int times) const;
  // From the last request with that verb and resource: "limit" of the query, "body".
  std::string Last(const std::string& verb, const std::string& resource,
                   const std::string& what) const;

 private:
  struct Request {
    std::string verb, subresource, token, body;
    FakeApiStore::Key key;
    FakeApiStore::Query query;
  };
  struct Planned {
    Trouble trouble;
    std::string verb, resource;
    int times;
  };

  void Accept();
  void Serve(int socket);
  bool Answer(int socket, const Request& request);
  FakeApiStore::Answer Do(const Request& request);
  void Stream(int socket, const Request& request, const Trouble* trouble);
  bool SendChunk(int socket, std::string_view bytes);
  void WaitForEnd();

  int listener_ = -1;
  int port_ = 0;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  FakeApiStore store_;
  std::vector<Planned> planned_;
  std::map<std::pair<std::string, std::string>, std::vector<Request>> asked_;
  std::string token_;
  size_t part_ = SIZE_MAX;
  int bookmarks_ = 0, repeats_ = 0, ends_ = 0;
  bool stopping_ = false;
  std::vector<int> sockets_;
  size_t silent_ = 0;  // the first ones
  std::list<std::jthread> threads_;
  std::jthread accepting_;
};

}  // namespace sluice::k8s
