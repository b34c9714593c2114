#include "catalog/sql/sqlstate.h"

#include <utility>

namespace sluice::catalog {

Code CodeOfSqlState(std::string_view sqlstate) {
  struct Entry {
    std::string_view prefix;
    Code code;
  };
  // The first prefix that matches decides: complete codes come before their class.
  static constexpr Entry kEntries[] = {
      {"42P01", Code::kNotFound},
      {"42703", Code::kNotFound},
      {"42704", Code::kNotFound},
      {"42883", Code::kNotFound},
      {"3D000", Code::kNotFound},
      {"3F000", Code::kNotFound},
      {"42710", Code::kAlreadyExists},
      {"42P07", Code::kAlreadyExists},
      {"42P06", Code::kAlreadyExists},
      {"23505", Code::kAlreadyExists},
      {"42501", Code::kPermissionDenied},
      {"28", Code::kPermissionDenied},
      {"57014", Code::kCancelled},
      {"57P", Code::kUnavailable},
      {"55P03", Code::kAborted},
      {"40", Code::kAborted},
      {"08", Code::kUnavailable},
      {"53", Code::kResourceExhausted},
      {"54", Code::kResourceExhausted},
      {"0A", Code::kUnimplemented},
      {"25", Code::kFailedPrecondition},
      {"55", Code::kFailedPrecondition},
      {"2BP01", Code::kFailedPrecondition},
      {"22", Code::kInvalidArgument},
      {"23", Code::kInvalidArgument},
      {"42", Code::kInvalidArgument},
      {"58", Code::kUnavailable},
  };
  for (const Entry& entry : kEntries) {
    if (sqlstate.substr(0, entry.prefix.size()) == entry.prefix) {
      return entry.code;
    }
  }
  return Code::kUnknown;
}

Status DatabaseError(std::string_view sqlstate, std::string message) {
  return Status(CodeOfSqlState(sqlstate), std::move(message)).SqlState(sqlstate);
}

bool IsConnectionLost(const Status& status) {
  return !status.ok() && (status.sqlstate().starts_with("08") || status.sqlstate() == "57P01" ||
                          status.sqlstate() == "57P02" || status.sqlstate() == "57P03");
}

bool IsOutOfConnections(const Status& status) {
  return !status.ok() && status.sqlstate() == "53300";
}

bool IsLocked(const Status& status) {
  return !status.ok() && status.sqlstate() == "55P03";
}

bool IsSnapshotGone(const Status& status) {
  return !status.ok() && status.sqlstate() == "72000";
}

bool IsUnavailableForNow(const Status& status) {
  return IsConnectionLost(status) || IsOutOfConnections(status) || IsLocked(status);
}

bool MayBeWrittenLater(const Status& status) {
  return IsUnavailableForNow(status) || (!status.ok() && status.sqlstate() == "53100");
}

}  // namespace sluice::catalog
