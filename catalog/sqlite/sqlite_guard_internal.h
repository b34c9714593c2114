#pragma once

#include <sqlite3.h>

#include <string>
#include <string_view>

namespace sluice::catalog {

// What a client's session may not do, asked by SQLite for everything that a statement would touch
// while it is prepared: other files, extensions, PRAGMAs that harm, changes of Sluice's own tables
// and of the catalogs made for PostgreSQL's clients. Belongs to the connection's thread; outlives
// what the connection prepares.
class SqliteGuard {
 public:
  explicit SqliteGuard(sqlite3* connection);
  SqliteGuard(const SqliteGuard&) = delete;
  SqliteGuard& operator=(const SqliteGuard&) = delete;

  // Statements of our own, as long as one lives.
  class Open {
   public:
    explicit Open(SqliteGuard& guard) : guard_(guard) { ++guard_.open_; }
    ~Open() { --guard_.open_; }
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;

   private:
    SqliteGuard& guard_;
  };

  // What was prepared is asked for once more before it runs.
  void Renew();

  // Before a statement is prepared.
  void Begin(std::string_view sql);
  // Before it runs. VACUUM attaches a file of its own, which has no name.
  void BeginStep(bool vacuum) {
    refusal_.clear();
    made_.clear();
    vacuum_ = vacuum;
  }
  bool vacuum() const { return vacuum_; }  // what has begun
  // Of the statement since then; "": nothing was refused.
  const std::string& refusal() const { return refusal_; }

 private:
  static int Ask(void* self, int action, const char* first, const char* second, const char* schema,
                 const char* trigger);
  int Refuse(std::string why);
  int AskFor(int action, const std::string& first, const std::string& second,
             const std::string& schema);

  sqlite3* const connection_;
  int open_ = 0;
  bool vacuum_ = false;
  std::string made_;  // the Sluice table that a trigger names or a RENAME would make; "": none
  std::string refusal_;
};

}  // namespace sluice::catalog
