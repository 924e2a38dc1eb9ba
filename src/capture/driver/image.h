/* SPDX-License-Identifier: Apache-2.0
 * What a code image says of itself: the kernels of a cubin (an ELF file, as
 * ptxas writes it) or of PTX text. Of other forms nothing can be read. */
#ifndef MEMSIM_CAPTURE_DRIVER_IMAGE_H
#define MEMSIM_CAPTURE_DRIVER_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum image_form {
    IMAGE_BAD, /* none that the driver takes */
    IMAGE_CUBIN,
    IMAGE_PTX,
    IMAGE_FATBIN, /* may be compressed, or be code for the linker, which our
                   * nvJitLink gives back: has whatever it is asked for */
};

#define IMAGE_PARAMETERS 64 /* of a kernel; further ones are not told */

struct image_kernel {
    const char *name; /* in the image, and not ended by a NUL there */
    size_t length;
    uint32_t registers;
    uint32_t shared_bytes; /* static */
    uint16_t parameter_bytes[IMAGE_PARAMETERS];
    uint32_t parameter_count; /* 0: not known */
};

struct image_variable {
    const char *name;
    size_t length;
    uint64_t bytes;
};

enum image_form image_form(const void *image);

/* Each is called for every one of its kind, until it returns false. */
struct image_reader {
    bool (*kernel)(const struct image_kernel *kernel, void *context);
    bool (*variable)(const struct image_variable *variable, void *context);
    void *context;
};

void image_read(const void *image, const struct image_reader *reader);

/* A file's bytes and a NUL, in memory of their own. */
struct image_file {
    void *data; /* NULL: nothing could be read */
    size_t bytes;
};

/* Returns false where there is no file PATH. */
bool image_file_open(struct image_file *file, const char *path);
void image_file_close(struct image_file *file);

#endif
