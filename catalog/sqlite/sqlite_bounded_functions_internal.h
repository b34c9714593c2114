#pragma once

#include <sqlite3.h>

namespace sluice::catalog {

// SQLite's own instr, replace, trim, ltrim, rtrim and json_patch take as many steps as the product
// of their texts' lengths, for days if both are long, and within one call nothing can end them.
// Replaces them on a connection: with functions that give the same answers in linear time,
// json_patch with one that refuses texts that are too long (54000), printf and format with such as
// refuse to fill up more than ten million characters; and limits the patterns of LIKE and GLOB to
// 1,000 bytes.
void BoundFunctions(sqlite3* connection);

}  // namespace sluice::catalog
