#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace sluice::k8s {

// The state and answers of an API server, without HTTP: objects, versions, and a history of events.
// Behaves as the contract suite (api_contract_test.cc) demands of a real one. Not thread-safe.
class FakeApiStore {
 public:
  struct Key {
    std::string resource;  // "pods"
    std::string namespace_name;
    std::string name;
    bool operator<(const Key& other) const {
      return std::tie(resource, namespace_name, name) <
             std::tie(other.resource, other.namespace_name, other.name);
    }
  };
  struct Answer {
    int code = 200;
    std::string body;
  };
  using Query = std::map<std::string, std::string>;
  using Labels = std::map<std::string, std::string>;

  Answer Create(Key key, std::string_view body);
  Answer Get(const Key& key) const;
  Answer List(const Key& key, const Query& query);
  Answer Update(const Key& key, std::string_view body);
  Answer Patch(const Key& key, const std::string& subresource, std::string_view body);
  Answer Delete(const Key& key, std::string_view body);
  Answer Bind(const Key& key, std::string_view body);

  // The events after `version`, as frames of a watch; `version` becomes that of the last one.
  // nullopt: they are forgotten.
  std::optional<std::vector<std::string>> EventsAfter(const Key& key, const std::string& selector,
                                                      int64_t& version) const;
  std::string Bookmark() const;
  int64_t version() const { return version_; }
  // Forgets the history: older versions, and lists that are being paged through, are gone.
  void Compact() { compacted_ = version_; }

  static std::string StatusJson(int code, std::string_view reason, const std::string& message);
  static Answer Refusal(int code, std::string_view reason, const std::string& message) {
    return {code, StatusJson(code, reason, message)};
  }

 private:
  struct Event {
    int64_t version = 0;
    Key key;
    std::string before, after;  // objects; empty: there was none
  };
  std::string Put(const Key& key, std::string json);
  void Remove(const Key& key);
  std::optional<Answer> OverQuota(const Key& key) const;
  std::optional<int64_t> PriorityOf(std::string_view priority_class) const;

  std::map<Key, std::string> objects_;
  std::vector<Event> events_;
  int64_t version_ = 100, compacted_ = 100, uids_ = 0;
  int addresses_ = 0;
};

}  // namespace sluice::k8s
