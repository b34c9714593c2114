#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::plan {
class Plan;
}

namespace sluice::server {

class Session;

// What a statement has used and made, for the audit.
struct StatementUse {
  struct Model {
    std::string schema, name;
    int64_t version = 0;  // 0: not known, or none yet
    std::string sha256;   // of the weights; "": not known
  };
  std::vector<Model> models;
  std::vector<std::string> columns;  // that were read; of a plain statement: that it returned
  std::string snapshot;
  int64_t job = 0;  // 0: none
  int64_t rows_sent = 0;
  int64_t rows_read = 0;                              // by the job
  std::vector<std::string> granted_to, revoked_from;  // roles
  std::string tag;                                    // "INSERT 0 3"
};

// Before the plan runs. Looks up the version of the model that it uses; one that cannot be found is
// the statement's own error.
void NoteBeginning(const plan::Plan& plan, Session& session, StatementUse* use);
// After it has run: what its job read, and the version that it made.
void NoteEnd(const plan::Plan& plan, bool succeeded, Session& session, StatementUse* use);

}  // namespace sluice::server
