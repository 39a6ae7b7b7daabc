// Selected rows of dense tables, copied next to each other in batches, for the same loops as consecutive rows.
#pragma once

#include <cstring>
#include <vector>

#include "score/score.h"

namespace tallybayes {

class GatheredTable {
 public:
  // Memory for `capacity` rows of a table.
  GatheredTable(const Table& source, size_t capacity) : source_(source), capacity_(capacity) {
    if (source.row_major()) {
      row_bytes_ = source.n_columns * size_of(source.type);
      bytes_.resize(capacity * row_bytes_);
      return;
    }
    size_t n_bytes = 0;
    for (size_t j = 0; j < source.n_columns; j++) n_bytes += capacity * size_of(source.column(j).type);
    bytes_.resize(n_bytes);
    size_t start = 0;
    for (size_t j = 0; j < source.n_columns; j++) {
      const size_t size = size_of(source.column(j).type);
      columns_.push_back({bytes_.data() + start, static_cast<ptrdiff_t>(size), source.column(j).type});
      start += capacity * size;
    }
  }
  GatheredTable(const GatheredTable&) = delete;
  GatheredTable(GatheredTable&&) = default;

  // The rows with these n numbers; n_ahead numbers follow, whose rows are prefetched.
  Table take(const int64_t* rows, size_t n, size_t n_ahead) {
    Table table;
    table.n_rows = n;
    table.n_columns = source_.n_columns;
    table.type = source_.type;
    if (source_.row_major()) {
      for (size_t i = 0; i < n; i++) {
        if (i < n_ahead) prefetch(source_.row(static_cast<size_t>(rows[n + i])));
        copy_row(bytes_.data() + i * row_bytes_, source_.row(static_cast<size_t>(rows[i])));
      }
      table.data = bytes_.data();
      table.row_stride = static_cast<ptrdiff_t>(row_bytes_);
      table.column_stride = static_cast<ptrdiff_t>(size_of(source_.type));
      return table;
    }
    table.separate = true;
    table.columns = columns_.data();
    unsigned char* out = bytes_.data();
    for (size_t j = 0; j < source_.n_columns; j++) {
      const Column column = source_.column(j);
      switch (size_of(column.type)) {
        case 1: copy<1>(column, rows, n, out); break;
        case 2: copy<2>(column, rows, n, out); break;
        case 4: copy<4>(column, rows, n, out); break;
        default: copy<8>(column, rows, n, out);
      }
      out += capacity_ * size_of(column.type);
    }
    return table;
  }

 private:
  void prefetch(Bytes row) const {
    constexpr size_t most_bytes = 1024;  // beyond, the hardware prefetcher is effective
    for (size_t byte = 0; byte < std::min(row_bytes_, most_bytes); byte += 64) __builtin_prefetch(row + byte);
  }
  // In whole words, the last one overlapping: for short rows this is faster than calling memcpy.
  void copy_row(unsigned char* out, Bytes row) const {
    constexpr size_t word = 16, most_bytes = 256;
    if (row_bytes_ < word || row_bytes_ > most_bytes) {
      std::memcpy(out, row, row_bytes_);
      return;
    }
    for (size_t byte = 0; byte + word < row_bytes_; byte += word) std::memcpy(out + byte, row + byte, word);
    std::memcpy(out + row_bytes_ - word, row + row_bytes_ - word, word);
  }
  template <size_t size>
  static void copy(const Column& column, const int64_t* rows, size_t n, unsigned char* out) {
    for (size_t i = 0; i < n; i++) std::memcpy(out + i * size, column.at(static_cast<size_t>(rows[i])), size);
  }

  Table source_;
  size_t capacity_, row_bytes_ = 0;
  std::vector<unsigned char> bytes_;
  std::vector<Column> columns_;
};

}  // namespace tallybayes
