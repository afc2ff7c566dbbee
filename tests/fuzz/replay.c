/* Runs a fuzzer's entry on inputs kept as text instead of under libFuzzer: what the fuzzers found
 * once, checked by every build with tests. A line is one input in hexadecimal digits. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define INPUT_MAX 2048

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int digit(int c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Bytes up to the end of the line; -1 at the end of the file. */
static int read_line(FILE *file, uint8_t *data) {
  int count = 0, high = fgetc(file);
  if (high == EOF) {
    return -1;
  }
  while (digit(high) >= 0 && count < INPUT_MAX) {
    const int low = fgetc(file);
    if (digit(low) < 0) {
      break;
    }
    data[count++] = (uint8_t)(16 * digit(high) + digit(low));
    high = fgetc(file);
  }
  return count;
}

int main(int argument_count, char **arguments) {
  uint8_t data[INPUT_MAX];
  FILE *file = argument_count == 2 ? fopen(arguments[1], "r") : NULL;
  int line = 0;
  if (!file) {
    fprintf(stderr, "usage: %s FILE, an input a line in hexadecimal digits\n", arguments[0]);
    return 1;
  }
  for (int size = read_line(file, data); size >= 0; size = read_line(file, data)) {
    fprintf(stderr, "input %d\n", ++line); /* the last one is what stopped */
    LLVMFuzzerTestOneInput(data, (size_t)size);
  }
  fclose(file);
  return line == 0;
}
