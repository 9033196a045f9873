"""Read given frames of a video: one module a library, all with `import_fault` and `read_frames`."""
